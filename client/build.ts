import { execFile } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { asyncApiJson } from './generate-asyncapi.ts'
import { generatedSources } from './generate.ts'

const here = (path: string): string => new URL(path, import.meta.url).pathname

/** Builds the modules `client` and `react` and their types into a directory. */
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
  await compile(['-p', here('.'), ...options])
}

/**
 * Runs the TypeScript compiler.
 * @throws Error with its output if it fails
 */
export async function compile(options: readonly string[], cwd = here('.')): Promise<void> {
  // The test runner sets NODE_OPTIONS, which the compiler must not inherit.
  const run = promisify(execFile)('env', ['-u', 'NODE_OPTIONS', 'tsc', ...options], { cwd })
  await run.catch((error: { stdout: string; stderr: string }) => {
    throw new Error(error.stdout + error.stderr)
  })
}

if (import.meta.main) {
  await writeFile(here('../src/openapi/asyncapi.json'), asyncApiJson())
  for (const [name, text] of Object.entries(generatedSources())) await writeFile(here(`src/${name}`), text)
  await rm(here('dist'), { recursive: true, force: true })
  await buildClient(here('dist'))
}
