// The runner gives ACTIONS_RESULTS_URL and ACTIONS_RUNTIME_TOKEN to JavaScript actions alone. This one hands its
// environment to `sweepctl fetch` of PATH, without a shell, and ends as it ends.
'use strict'

const { spawn } = require('node:child_process')

const lines = (process.env.INPUT_ARGUMENTS || '').split('\n').map((line) => line.trim())
const child = spawn('sweepctl', ['fetch', ...lines.filter((line) => line !== '')], { stdio: 'inherit' })

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => child.kill(signal))
}
child.on('error', (error) => {
  console.error(`::error title=fetch-artifacts::sweepctl cannot be started (${error.code}): set it up in a step before`)
  process.exitCode = 1
})
child.on('exit', (code) => {
  process.exitCode = code ?? 1
})
