import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** The last commit of version 0.3. */
const COMMIT = '438ca021'

/** A checkout of version 0.3 with its packages: that of BEFORE, or one that is made from the history of this repository. */
export function before(): string {
  const given = process.env['BEFORE']
  if (given !== undefined && given !== '') return given
  const folder = join(ROOT, 'node_modules/.cache', `before-${COMMIT}`)
  if (existsSync(join(folder, 'node_modules/fastify'))) return folder
  throw new Error(`${folder} is missing: npm run test:upgrade makes it`)
}

/** Makes the checkout. It needs the history of the repository, and the network. */
export function prepare(): void {
  if (process.env['BEFORE'] !== undefined) return
  const folder = join(ROOT, 'node_modules/.cache', `before-${COMMIT}`)
  if (existsSync(join(folder, 'node_modules/fastify'))) return
  mkdirSync(folder, { recursive: true })
  execFileSync('sh', ['-c', 'git archive "$0" | tar -x -C "$1"', COMMIT, folder], { cwd: ROOT, stdio: 'inherit' })
  execFileSync('npm', ['ci', '--omit=dev', '--no-audit', '--no-fund'], { cwd: folder, stdio: 'inherit' })
}

if (import.meta.main) prepare()
