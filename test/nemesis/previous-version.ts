import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/**
 * The fault that has one instance be of the version before this one, which cannot promise all that this one can: its audit lines have
 * no `instance` and `version` (`scanLog`), and it does not take over what a killed instance had to do after a logout
 * (`ended-is-revoked`). Everything else it has to keep, and let the others keep.
 */
export const PREVIOUS = 'previous-version'

/** The last commit of that version. */
const COMMIT = '438ca021'
/** What its servers need. */
const PARTS = ['src', 'package.json']
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)

let prepared: Promise<string | undefined> | undefined

/**
 * The folder of the previous version with the packages of this one, made once, and until this process ends. Undefined where git does
 * not have it, as in a shallow clone.
 */
export function previousVersion(): Promise<string | undefined> {
  return (prepared ??= prepare())
}

async function prepare(): Promise<string | undefined> {
  const isThere = await run('git', ['-C', ROOT, 'cat-file', '-e', `${COMMIT}^{commit}`]).then(
    () => true,
    () => false,
  )
  if (!isThere) return undefined
  const folder = mkdtempSync(join(tmpdir(), 'nemesis-previous-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const archive = join(folder, 'previous.tar')
  await run('git', ['-C', ROOT, 'archive', '--output', archive, COMMIT, ...PARTS])
  await run('tar', ['-xf', archive, '-C', folder])
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return folder
}
