import { execFile } from 'node:child_process'
import { cp, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import type { Page } from 'playwright-core'
import { test, type Test } from 'tap'
import { sendForm, testChromium } from '../../support/browser/chromium.ts'
import { startWorld } from '../../support/world.ts'
import type { Stranger, User } from './shared/calls.ts'

const HERE = new URL('.', import.meta.url).pathname
const COMPILERS = ['typescript', 'typescript-5']
const LIBRARIES = { target: 'es2022', lib: ['es2022', 'dom', 'dom.iterable'], types: [] }
const MODULES = { module: 'esnext', moduleResolution: 'bundler', allowImportingTsExtensions: true }
const TSCONFIG = { compilerOptions: { strict: true, noEmit: true, skipLibCheck: true, ...LIBRARIES, ...MODULES } }

/** A generator, its command as its users write it, and the pages that use what it makes. */
interface Generator {
  readonly name: string
  /** Folders here: its settings and its pages. A file of the last one replaces those of the same name. */
  readonly folders: readonly string[]
  readonly command: string
  readonly pages: readonly string[]
}

const ORVAL = ['fetch', 'react-query', 'zod']
const GENERATORS: readonly Generator[] = [
  {
    name: 'openapi-typescript',
    folders: ['openapi-typescript'],
    command: 'openapi-typescript/bin/cli.js openapi.json -o client.ts',
    pages: ['page'],
  },
  {
    name: 'Hey API',
    folders: ['hey-api'],
    command: '@hey-api/openapi-ts/bin/run.js -i openapi.json -o client',
    pages: ['page'],
  },
  { name: 'Orval 8', folders: ['orval'], pages: ORVAL, command: 'orval/dist/bin/orval.mjs --config orval.config.cjs' },
  {
    name: 'Orval 7',
    folders: ['orval', 'orval-7'],
    pages: ORVAL,
    command: 'orval-7/dist/bin/orval.js --config orval.config.cjs',
  },
  { name: 'Kubb', folders: ['kubb'], command: '@kubb/cli/bin/kubb.cjs generate', pages: ['page'] },
  {
    name: 'swagger-typescript-api',
    folders: ['swagger-typescript-api'],
    command: 'swagger-typescript-api/dist/cli.mjs generate -p openapi.json -o . -n client.ts',
    pages: ['page'],
  },
]

/** Runs a script of Node as a user would. Fails with what it printed. */
async function run(cwd: string, script: string, ...options: readonly string[]): Promise<void> {
  // The test runner sets NODE_OPTIONS, which other programs must not inherit.
  const command = ['-u', 'NODE_OPTIONS', 'DO_NOT_TRACK=1', process.execPath, script, ...options]
  await promisify(execFile)('env', command, { cwd }).catch(({ stdout, stderr }: { stdout: string; stderr: string }) => {
    throw new Error(stdout + stderr)
  })
}

/** A folder for clients, with what they need. */
async function folderOf(t: Test): Promise<string> {
  const dir = t.testdir({ 'package.json': '{"type":"module"}' })
  await symlink(join(HERE, 'node_modules'), join(dir, 'node_modules'))
  await cp(join(HERE, 'shared'), join(dir, 'shared'), { recursive: true })
  return dir
}

/** Makes the client of a generator beside its pages. @returns its folder */
async function generated(dir: string, { name, folders, command }: Generator, document: string): Promise<string> {
  const at = join(dir, name.replace(' ', '-'))
  for (const folder of folders) await cp(join(HERE, folder), at, { recursive: true })
  await writeFile(join(at, 'openapi.json'), document)
  const [script = '', ...options] = command.split(' ')
  await run(at, join(HERE, 'node_modules', script), ...options)
  return at
}

/** Compiles a client and its pages with each compiler. */
async function compiles(t: Test, at: string): Promise<void> {
  await writeFile(join(at, 'tsconfig.json'), JSON.stringify(TSCONFIG))
  for (const compiler of COMPILERS) {
    await t.resolves(run(at, join(HERE, '../../../node_modules', compiler, 'bin/tsc'), '-p', '.'), compiler)
  }
}

/** The calls whose success has no type: redirects and sockets, which have none, and a body of which nothing is documented. */
const UNTYPED = [
  'GET:/api/applications/v1/markup-statistics',
  'GET:/auth/callback',
  'GET:/auth/login',
  'GET:/auth/signup',
  'GET:/ws/public',
  'GET:/ws/session',
  'GET:/ws/trading/{accountId}',
]

/** swagger-typescript-api keeps compilers from checking what it makes, and types as any what it does not understand. */
async function openToChecks(t: Test, path: string): Promise<void> {
  const source = await readFile(path, 'utf8')
  await writeFile(path, source.replace('// @ts-nocheck', ''))
  const calls = [...source.matchAll(/@request (\S+)(?:(?!@request)[^])*?this\.request<\s*(\w+)/g)]
  t.ok(calls.length > UNTYPED.length)
  t.same(calls.flatMap(([, call, type]) => (type === 'any' ? call : [])).toSorted(), UNTYPED)
}

/** Calls a function of a page. */
async function call<R>(page: Page, script: string, name: 'stranger' | 'user'): Promise<R> {
  return (await page.evaluate(`import('/${script}').then((page) => page.${name}())`)) as R
}

await test('clients of generators compile under strict, have types of successes, and their calls succeed', async (t) => {
  const dir = await folderOf(t)
  await mkdir(join(dir, 'site'))
  await writeFile(join(dir, 'site/index.html'), '<!doctype html><title>Page</title>')
  const { server } = await startWorld(t, {
    settings: { STATIC_DIR: join(dir, 'site'), PARTNER_OVERVIEW_PATH: '/partners/analytics/v1/overview' },
  })
  const document = await (await fetch(`${server.url}/openapi.json`)).text()
  const scripts: { name: string; script: string }[] = []

  for (const generator of GENERATORS) {
    await t.test(`${generator.name}: compiles`, async (t) => {
      const at = await generated(dir, generator, document)
      if (generator.name === 'swagger-typescript-api') await openToChecks(t, join(at, 'client.ts'))
      await compiles(t, at)
      for (const page of generator.pages) {
        const script = `${generator.name.replace(' ', '-')}-${page}.js`
        const outfile = join(dir, 'site', script)
        await build({ entryPoints: [join(at, `${page}.ts`)], outfile, bundle: true, format: 'esm', logLevel: 'error' })
        scripts.push({ name: `${generator.name}, ${page}`, script })
      }
    })
  }

  const page = await (await testChromium(t)).newPage()
  await page.goto(server.url)
  for (const { name, script } of scripts) {
    t.same(await call<Stranger>(page, script, 'stranger'), { authenticated: false, code: 'login_required' }, name)
  }
  await page.goto(`${server.url}/auth/login`)
  await sendForm(page)
  await page.waitForURL(`${server.url}/`)
  const mediaTypes: (string | undefined)[] = []
  page.on('request', (request) => {
    if (request.method() === 'POST') mediaTypes.push(request.headers()['content-type'])
  })
  for (const { name, script } of scripts) {
    t.match(await call<User>(page, script, 'user'), { balances: [10_000, 1000], opened: 10_000 }, name)
  }
  t.same(
    mediaTypes,
    scripts.map(() => 'application/json'),
  )
})

await test('types that Modelina makes from /asyncapi.json have names, compile, and tell messages apart', async (t) => {
  const at = join(await folderOf(t), 'modelina')
  await cp(join(HERE, 'modelina'), at, { recursive: true })
  await cp(new URL('../../../src/openapi/asyncapi.json', import.meta.url), join(at, 'asyncapi.json'))
  await run(at, 'models.js')
  const models = (await readdir(at)).filter((name) => /^[A-Z]\w+\.ts$/.test(name))
  t.ok(models.length > 90)
  t.same(
    models.filter((name) => name.includes('Anonymous')),
    [],
  )
  await compiles(t, at)
})
