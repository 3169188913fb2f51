import { execFile } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { build, type Plugin } from 'esbuild'
import { asyncApiJson } from './generate-asyncapi.ts'
import { generatedSources } from './generate.ts'

const here = (path: string): string => new URL(path, import.meta.url).pathname

/** Parts of the package with an address of their own: `trading-bff-client/<name>`, and `/client/<name>.js` on the server. */
const PARTS = ['series']

/** The core imports a part only when a page uses it: from the directory beside it, as the server serves it. */
const separateParts: Plugin = {
  name: 'separate parts',
  setup(build) {
    build.onResolve({ filter: /^\.\/series\.ts$/ }, ({ kind }) =>
      kind === 'dynamic-import' ? { path: './client/series.js', external: true } : undefined,
    )
  },
}

/** Builds the modules of the package and their types into a directory. */
export async function buildClient(outdir: string): Promise<void> {
  await build({
    entryPoints: {
      client: here('src/client.ts'),
      react: here('src/react.ts'),
      ...Object.fromEntries(PARTS.map((name) => [`client/${name}`, here(`src/${name}.ts`)])),
    },
    plugins: [separateParts],
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
  for (const name of PARTS) await writeFile(`${outdir}/client/${name}.d.ts`, `export * from '../${name}.js'\n`)
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
