import { execFile } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { catalogSource } from './generate.ts'

const here = (path: string): string => new URL(path, import.meta.url).pathname

/** Builds the package into a directory: two modules, and their types. */
export async function buildClient(outdir: string): Promise<void> {
  await build({
    entryPoints: { client: here('src/client.ts'), react: here('src/react.ts') },
    outdir,
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    external: ['react'],
    logLevel: 'warning',
  })
  const options = ['--noEmit', 'false', '--declaration', '--emitDeclarationOnly', '--outDir', outdir]
  await promisify(execFile)('tsc', ['-p', here('.'), ...options])
}

if (import.meta.main) {
  await writeFile(here('src/catalog.ts'), catalogSource())
  await rm(here('dist'), { recursive: true, force: true })
  await buildClient(here('dist'))
}
