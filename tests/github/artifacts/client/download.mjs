// Fetches artifacts of the run with GitHub's own client, as `actions/download-artifact` does: the folder, a file for what
// is said of them, and their names.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DefaultArtifactClient } from '@actions/artifact'

async function fetchAll(folder, said, names) {
  const client = new DefaultArtifactClient()
  const { artifacts } = await client.listArtifacts({ latest: true })
  const fetched = []
  for (const name of names) {
    const { artifact } = await client.getArtifact(name)
    const path = join(folder, name)
    mkdirSync(path, { recursive: true })
    const { digestMismatch } = await client.downloadArtifact(artifact.id, { path, expectedHash: artifact.digest })
    fetched.push({ name, id: artifact.id, digest: artifact.digest, digestMismatch })
  }
  writeFileSync(said, JSON.stringify({ listed: artifacts, fetched }))
}

const [folder, said, ...names] = process.argv.slice(2)
fetchAll(folder, said, names).catch((error) => {
  console.error(error)
  process.exitCode = 1
})
