import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'

const CLIENT = new URL('../../../client/', import.meta.url).pathname

/**
 * Runs a program without the NODE_OPTIONS of the test runner.
 * @throws Error with its output if it fails
 */
export async function run(cwd: string, command: string, ...options: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('env', ['-u', 'NODE_OPTIONS', command, ...options], { cwd })
  return stdout.trim()
}

interface Packed {
  readonly tarball: string
  /** The path of each file in it. */
  readonly files: readonly string[]
}

let pack: Promise<Packed> | undefined

/** The browser package, packed as for a release, once for all tests of a file. */
export function packed(): Promise<Packed> {
  return (pack ??= packInto(tmpdir()))
}

async function packInto(parent: string): Promise<Packed> {
  const dir = await mkdtemp(join(parent, 'packed-'))
  process.once('exit', () => rmSync(dir, { recursive: true }))
  const [pack] = JSON.parse(await run(CLIENT, 'npm', 'pack', '--json', '--pack-destination', dir)) as {
    filename: string
    files: { path: string }[]
  }[]
  return { tarball: join(dir, pack?.filename ?? ''), files: pack?.files.map(({ path }) => path) ?? [] }
}

/**
 * A project in which nothing but the packed browser package is installed, without any registry. It ends with the test.
 * @param files by path
 * @returns its folder, which is outside of the repository, so that no other module is found
 */
export async function freshProject(t: Test, files: Readonly<Record<string, string>>): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'fresh-project-'))
  t.teardown(() => rm(dir, { recursive: true }))
  const { tarball } = await packed()
  for (const [name, text] of Object.entries({ 'package.json': '{"private":true,"type":"module"}', ...files })) {
    await writeFile(join(dir, name), text)
  }
  await run(dir, 'npm', 'install', '--offline', '--no-audit', '--no-fund', tarball)
  return dir
}
