import { cp, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { scanLog } from '../support/telemetry/log-scan.ts'
import { execute, NAME, ROOT } from './docker.ts'

/** The parts of the repository that the documented commands need. */
const USED = [
  'src',
  'client',
  'sandbox',
  'deploy',
  'package.json',
  'package-lock.json',
  'Dockerfile',
  '.dockerignore',
  'docker-compose.yml',
]
const isNoSecret = (path: string): boolean => path !== join(ROOT, 'deploy/secrets')

/** Clones the repository. @returns a function that runs shell commands in the clone; teardown removes their containers */
export async function clone(t: Test): Promise<(script: string) => Promise<string>> {
  // The clone is on the file system of node_modules, so that these can be hard links.
  const dir = await mkdtemp(join(ROOT, '.tap/image-test-'))
  for (const name of USED) await cp(join(ROOT, name), join(dir, name), { recursive: true, filter: isNoSecret })
  await execute('cp', ['-al', join(ROOT, 'node_modules'), join(dir, 'node_modules')])
  // The project has its own name, so that other containers are not touched.
  const env = { COMPOSE_PROJECT_NAME: NAME, STATIC_DIR: '/sandbox/built-page' }
  const shell = (script: string): Promise<string> =>
    execute('bash', ['-euo', 'pipefail', '-c', script], { cwd: dir, env })
  t.teardown(async () => {
    scanLog(t, await shell('docker compose logs --no-color --no-log-prefix app'))
    await shell('docker compose --profile sandbox down --volumes --timeout 1 --rmi local')
    await rm(dir, { recursive: true })
  })
  return shell
}
