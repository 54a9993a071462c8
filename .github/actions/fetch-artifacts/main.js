// Rendered by sweepctl from workflows-templates/fetch-artifacts.js and configs/. Do not edit: change those and run `sweepctl render`.
// The runner gives ACTIONS_RESULTS_URL and ACTIONS_RUNTIME_TOKEN to JavaScript actions alone. This one hands its
// environment to `sweepctl fetch` of PATH, without a shell, and ends as it ends.
'use strict'

const { spawn } = require('node:child_process')

const failed = (error) => {
  console.error(`::error title=fetch-artifacts::sweepctl cannot be started (${error.code}): set it up in a step before`)
  process.exitCode = 1
}

const lines = (process.env.INPUT_ARGUMENTS || '').split('\n').map((line) => line.trim())
try {
  const child = spawn('sweepctl', ['fetch', ...lines.filter((line) => line !== '')], { stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.on(signal, () => child.kill(signal))
  }
  child.on('error', failed)
  child.on('exit', (code) => {
    process.exitCode = code ?? 1
  })
} catch (error) {
  failed(error)
}
