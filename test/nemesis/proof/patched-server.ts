import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { applied, ROOT, type Patch } from './patch.ts'

/** What a server needs of a checkout. */
const PARTS = ['src', 'client/dist', 'package.json']

/** Makes a copy of the product with a patch. @returns its program, and the end of the copy */
export function patchedServer({ name, files }: Patch): { main: string; remove: () => void } {
  const folder = mkdtempSync(join(tmpdir(), `nemesis-${name}-`))
  for (const part of PARTS) cpSync(join(ROOT, part), join(folder, part), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  for (const [path, hunks] of files)
    writeFileSync(join(folder, path), applied(readFileSync(join(ROOT, path), 'utf8'), hunks))
  return { main: join(folder, 'src/main.ts'), remove: () => rmSync(folder, { recursive: true }) }
}
