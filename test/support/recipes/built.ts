import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Recipe } from './recipe.ts'

const LIBRARIES = { target: 'es2022', lib: ['es2022', 'dom', 'dom.iterable'], types: ['vite/client'] }
const MODULES = { module: 'esnext', moduleResolution: 'bundler', allowImportingTsExtensions: true }
const TSCONFIG = { compilerOptions: { strict: true, noEmit: true, skipLibCheck: true, ...LIBRARIES, ...MODULES } }

/** Compiles the scripts of a recipe. */
export async function compiles({ dir, run }: Recipe): Promise<void> {
  await writeFile(join(dir, 'tsconfig.json'), JSON.stringify({ ...TSCONFIG, include: ['src'] }))
  await run('tsc')
}

/**
 * Compiles and builds a recipe that is a part of a page, together with the rest of it.
 * @param main the script of the page
 * @param html what the page shows
 * @returns the folder for STATIC_DIR
 */
export async function built(recipe: Recipe, main: string, html = '<main></main>'): Promise<string> {
  const { dir, run } = recipe
  await writeFile(join(dir, 'src/main.ts'), main)
  const script = '<script type="module" src="/src/main.ts"></script>'
  await writeFile(join(dir, 'index.html'), `<!doctype html><title>Page</title>${html}${script}`)
  await compiles(recipe)
  await run('vite', 'build')
  return join(dir, 'dist')
}
