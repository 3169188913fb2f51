import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Recipe } from './recipe.ts'

const LIBRARIES = { target: 'es2022', lib: ['es2022', 'dom', 'dom.iterable'], types: ['vite/client'] }
const MODULES = { module: 'esnext', moduleResolution: 'bundler', allowImportingTsExtensions: true }
const TSCONFIG = { compilerOptions: { strict: true, noEmit: true, skipLibCheck: true, ...LIBRARIES, ...MODULES } }

/**
 * Compiles and builds a recipe that is a part of a page, together with the rest of it.
 * @param main the script of the page
 * @param html what the page shows
 * @returns the folder for STATIC_DIR
 */
export async function built({ dir, run }: Recipe, main: string, html = '<main></main>'): Promise<string> {
  await writeFile(join(dir, 'tsconfig.json'), JSON.stringify({ ...TSCONFIG, include: ['src'] }))
  await writeFile(join(dir, 'src/main.ts'), main)
  const script = '<script type="module" src="/src/main.ts"></script>'
  await writeFile(join(dir, 'index.html'), `<!doctype html><title>Page</title>${html}${script}`)
  await run('tsc')
  await run('vite', 'build')
  return join(dir, 'dist')
}
