import { execFile } from 'node:child_process'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { build, type Plugin } from 'esbuild'

const here = (path: string): string => new URL(path, import.meta.url).pathname

/**
 * The modules of the package, and where each begins in src/. `client.js` is the core. The server serves it and all below
 * `client/`, such as `/client/series.js`.
 */
const ENTRIES = {
  client: 'core/client',
  'client/orders': 'orders/orders',
  'client/series': 'series/series',
  'client/sessions': 'sessions/sessions',
  devtools: 'devtools/devtools',
  react: 'react/react',
  server: 'server/server',
  testing: 'testing/testing',
}

/**
 * The core imports another entry only when a page uses it: from the directory beside it, as the server serves it. An entry
 * that imports the whole core shares that of the page, since a page tells errors by their class.
 */
const separateEntries: Plugin = {
  name: 'separate entries',
  setup(build) {
    build.onResolve({ filter: /^\.\.\/\.\.\// }, ({ kind, path }) => {
      const [entry] = Object.entries(ENTRIES).find(([, source]) => path === `../../${source}.ts`) ?? []
      return kind === 'dynamic-import' && entry !== undefined ? { path: `./${entry}.js`, external: true } : undefined
    })
    build.onResolve({ filter: /^\.\.\/core\/client\.ts$/ }, ({ importer }) => {
      const [entry = ''] =
        Object.entries(ENTRIES).find(([, source]) => dirname(importer) === here(`src/${dirname(source)}`)) ?? []
      return { path: `${entry.includes('/') ? '..' : '.'}/client.js`, external: true }
    })
  },
}

/**
 * Members of the core that no page, tab, server or other entry sees. They may have names as short as those of variables, which
 * change with every release: a page may load an entry of a newer server.
 */
const MEMBERS_OF_CORE =
  /^(bodyOf|carrier|chooseKey|exchange|hasReply|is(Command|Fresh|Proven|SameSession|Sent|Up)|link|listeners|mayBe(Executed|Made)|mayRepeat|nextId|onError|refusals|retire|statusListeners|subscribers|take|userCount)$/

/** The modules of the package and their source maps, as the sources give them, by their paths in dist/. */
async function bundles(): Promise<ReadonlyMap<string, Uint8Array>> {
  const { name, version } = JSON.parse(await readFile(here('package.json'), 'utf8')) as Record<string, string>
  const built = await Promise.all(
    Object.entries(ENTRIES).map(([entry, source]) =>
      build({
        entryPoints: { [entry]: here(`src/${source}.ts`) },
        ...(entry === 'client' && { mangleProps: MEMBERS_OF_CORE }),
        plugins: [separateEntries],
        // Wherever the files are written, their maps lead to the sources beside dist/ in the package.
        outdir: here('dist'),
        write: false,
        bundle: true,
        minify: true,
        sourcemap: 'linked',
        sourcesContent: false,
        // A comment that bundlers drop.
        banner: { js: `// ${name} ${version}` },
        define: { PACKAGE_VERSION: JSON.stringify(version) },
        // For browsers, esbuild itself would decide that this is a production build.
        platform: 'neutral',
        format: 'esm',
        target: 'es2022',
        external: ['react'],
        logLevel: 'warning',
      }),
    ),
  )
  return new Map(
    built.flatMap(({ outputFiles }) =>
      outputFiles.map(({ path, contents }) => [relative(here('dist'), path), contents]),
    ),
  )
}

/** Builds the modules of the package and their source maps into a directory. */
export async function writeModules(outdir: string): Promise<void> {
  for (const [path, contents] of await bundles()) {
    const file = join(outdir, path)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, contents)
  }
}

/** Builds the modules of the package, their source maps and their types into a directory. */
export async function buildClient(outdir: string): Promise<void> {
  await writeModules(outdir)
  const options = ['--noEmit', 'false', '--declaration', '--emitDeclarationOnly', '--outDir', `${outdir}/types`]
  await compile(['-p', here('.'), ...options])
  for (const [entry, source] of Object.entries(ENTRIES)) {
    const types = `${entry.includes('/') ? '..' : '.'}/types/${source}.js`
    await writeFile(`${outdir}/${entry}.d.ts`, `export * from '${types}'\n`)
  }
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

/** Ends the process with 1 where the modules in dist/ are not what the sources give: tests would try an older package. */
async function check(): Promise<void> {
  for (const [path, contents] of await bundles()) {
    const present = await readFile(here(`dist/${path}`)).catch(() => undefined)
    if (present?.equals(contents) === true) continue
    process.stderr.write(`client/dist/${path} is not what client/src gives. Run: npm run build:client\n`)
    process.exit(1)
  }
}

if (import.meta.main && process.argv[2] === '--check') await check()
else if (import.meta.main) {
  // Nobody else needs these, which load tables of the server.
  const [{ asyncApiJson }, { generatedSources }] = await Promise.all([
    import('./generate-asyncapi.ts'),
    import('./generate.ts'),
  ])
  await writeFile(here('../src/openapi/asyncapi.json'), asyncApiJson())
  for (const [name, text] of Object.entries(generatedSources()))
    await writeFile(here(`src/core/generated/${name}`), text)
  await rm(here('dist'), { recursive: true, force: true })
  await buildClient(here('dist'))
}
