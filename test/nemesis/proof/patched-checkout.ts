import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Test } from 'tap'
import { applied, ROOT, type Patch } from './patch.ts'

/** What the servers and the browser package need of a checkout. */
const PARTS = ['src', 'client/src', 'client/dist', 'client/build.ts', 'client/package.json', 'package.json']

/** Makes a copy of the product with a patch, which ends with the test. @returns its folder */
export async function patchedCheckout(t: Test, { name, files }: Patch): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), `nemesis-${name}-`))
  t.teardown(() => rmSync(folder, { recursive: true }))
  for (const part of PARTS) cpSync(join(ROOT, part), join(folder, part), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  for (const [path, hunks] of files)
    writeFileSync(join(folder, path), applied(readFileSync(join(ROOT, path), 'utf8'), hunks))
  if (![...files.keys()].some((path) => path.startsWith('client/'))) return folder
  const { writeModules } = (await import(
    pathToFileURL(join(folder, 'client/build.ts')).href
  )) as typeof import('../../../client/build.ts')
  await writeModules(join(folder, 'client/dist'))
  return folder
}
