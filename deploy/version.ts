import { readFileSync, writeFileSync } from 'node:fs'

/** The files that repeat the version of package.json, which their readers do not know, and where each does. */
export const REPEATED = {
  'client/package.json': /(?<="version": ")[^"]+/,
  'deploy/kubernetes/production/kustomization.yaml': /(?<=newTag: ).+/,
  'docs/asyncapi.yaml': /(?<=^ {2}version: ).+/m,
  Dockerfile: /(?<=image\.version=")[^"]+/,
} as const

// `npm version 1.2.3` runs this, after it has changed package.json, and then commits what is staged.
if (import.meta.main) {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly version: string }
  for (const [path, place] of Object.entries(REPEATED)) {
    writeFileSync(path, readFileSync(path, 'utf8').replace(place, version))
  }
}
