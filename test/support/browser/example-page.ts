import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { Test } from 'tap'

/** The page that docs/frontends.md tells its readers to copy. */
export const EXAMPLE_PAGE = fileURLToPath(new URL('../../../docs/examples/page', import.meta.url))
const PACKAGE = fileURLToPath(new URL('../../../client', import.meta.url))
const VITE = fileURLToPath(new URL('../../../node_modules/vite', import.meta.url))

/**
 * A copy of the example page, with the browser package and Vite installed.
 * @param more additional files, by path
 * @returns its folder
 */
export async function examplePage(t: Test, more: Readonly<Record<string, string>> = {}): Promise<string> {
  const dir = t.testdir({ node_modules: {} })
  await cp(EXAMPLE_PAGE, dir, { recursive: true, filter: (path) => !/\/(?:node_modules|dist)$/.test(path) })
  await symlink(PACKAGE, join(dir, 'node_modules/trading-bff-client'))
  await symlink(VITE, join(dir, 'node_modules/vite'))
  for (const [name, text] of Object.entries(more)) await writeFile(join(dir, name), text)
  return dir
}

/**
 * Bundles the scripts that the HTML files of a page load, as Vite does.
 * @param pages the names of these files
 * @returns the folder for STATIC_DIR
 */
export async function bundled(dir: string, pages: readonly string[] = ['index.html']): Promise<string> {
  const outdir = join(dir, 'dist')
  await mkdir(outdir)
  for (const page of pages) {
    const html = await readFile(join(dir, page), 'utf8')
    const [, entry = ''] = /<script type="module" src="\/(.*?)">/.exec(html) ?? []
    const script = page.replace('.html', '.js')
    await build({
      entryPoints: [join(dir, entry)],
      outfile: join(outdir, script),
      bundle: true,
      format: 'esm',
      jsx: 'automatic',
      define: { 'process.env.NODE_ENV': '"production"' },
    })
    await writeFile(join(outdir, page), html.replace(entry, script))
  }
  return outdir
}
