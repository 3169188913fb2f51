import { symlink, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Test } from 'tap'
import { build, type BuildOptions, type Rolldown } from 'vite'

const CLIENT = new URL('../../../client', import.meta.url).pathname

/** A page as Vite builds it for production. */
interface Built {
  /** The size of what the page loads at first, minified and gzipped, in bytes. */
  readonly size: number
  /** The modules of the package that the page loads at first, and those that it loads when it uses them. */
  readonly first: readonly string[]
  readonly later: readonly string[]
  /** The path of its script. */
  readonly script: string
}

/** Builds a page with this script, which may import the browser package, for production or for development. */
export async function builtPage(
  t: Test,
  source: string,
  mode: 'production' | 'development' = 'production',
  more: BuildOptions = {},
): Promise<Built> {
  // Vite decides by this what is production.
  const before = process.env['NODE_ENV']
  process.env['NODE_ENV'] = mode
  t.teardown(() => {
    if (before === undefined) delete process.env['NODE_ENV']
    else process.env['NODE_ENV'] = before
  })
  const root = t.testdir({ node_modules: {}, 'lazy.js': '', 'names.js': 'export const a = 1', 'main.js': source })
  await symlink(CLIENT, join(root, 'node_modules/trading-bff-client'))
  const built = (await build({
    configFile: false,
    root,
    mode,
    logLevel: 'error',
    build: { write: false, modulePreload: false, rolldownOptions: { input: join(root, 'main.js') }, ...more },
  })) as Rolldown.RolldownOutput | Rolldown.RolldownOutput[]
  const chunks = [built].flat().flatMap(({ output }) => output.filter((file) => file.type === 'chunk'))
  const modules = (isEntry: boolean): string[] =>
    chunks
      .filter((chunk) => chunk.isEntry === isEntry)
      .flatMap(({ moduleIds }) => moduleIds.map((id) => relative(join(CLIENT, 'dist'), id)))
      .filter((id) => !id.startsWith('..'))
      .toSorted()
  const text = chunks.find(({ isEntry }) => isEntry)?.code ?? ''
  const script = join(root, 'built.mjs')
  await writeFile(script, text)
  const size = gzipSync(text, { level: 9 }).length
  return { size, first: modules(true), later: modules(false), script }
}
