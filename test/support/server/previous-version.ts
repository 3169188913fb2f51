import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

/** The last commit of version 0.3. */
const COMMIT = '438ca021'
/** What its servers need. */
const PARTS = ['src', 'package.json']
const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
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
  const folder = mkdtempSync(join(tmpdir(), 'previous-version-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const archive = join(folder, 'previous.tar')
  await run('git', ['-C', ROOT, 'archive', '--output', archive, COMMIT, ...PARTS])
  await run('tar', ['-xf', archive, '-C', folder])
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return folder
}
