import { appendFile, cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { test } from 'tap'
import { buildClient, compile } from '../../client/build.ts'
import { createClient } from '../../client/dist/client.js'
import { generatedSources } from '../../client/generate.ts'
import { packed, run } from '../support/client/packed.ts'
import { untyped } from '../support/client/untyped.ts'

const CLIENT = new URL('../../client/', import.meta.url).pathname
const KIB = 1024

/** The paths of the files in a directory and below it. */
async function modulesIn(dir: string): Promise<string[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => relative(dir, join(parentPath, name)))
}

/** The size of a page's bundle with these contents, minified and gzipped as servers and tools do by default, in bytes. */
async function sizeOf(contents: string, resolveDir = join(CLIENT, 'dist')): Promise<number> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir },
    bundle: true,
    minify: true,
    format: 'esm',
    // A page loads the other parts only when it uses them.
    splitting: true,
    outdir: 'out',
    write: false,
  })
  const entry = outputFiles.find(({ path }) => path.endsWith('stdin.js'))
  return gzipSync(entry?.contents ?? '').length
}

await test('the committed bundle is what the source builds to', async (t) => {
  const built = t.testdir()
  await buildClient(built)
  const names = await modulesIn(built)
  t.same((await modulesIn(join(CLIENT, 'dist'))).toSorted(), names.toSorted())
  for (const name of names) {
    const [fresh, committed] = await Promise.all(
      [built, join(CLIENT, 'dist')].map((dir) => readFile(join(dir, name), 'utf8')),
    )
    t.equal(committed, fresh, `npm run build:client: ${name}`)
  }
})

await test('npm test refuses to try a bundle that is older than the source', async (t) => {
  const dir = t.testdir()
  for (const name of ['build.ts', 'package.json', 'src', 'dist'])
    await cp(join(CLIENT, name), join(dir, name), { recursive: true })
  const check = (): Promise<string> => run(dir, 'node', 'build.ts', '--check')
  t.equal(await check(), '')
  await appendFile(join(dir, 'src/core/client.ts'), 'export const more = 1\n')
  await t.rejects(check(), /client\/dist\/client\.js.* npm run build:client/)
  const { scripts } = JSON.parse(await readFile(join(CLIENT, '../package.json'), 'utf8')) as Record<string, object>
  t.match(scripts, { pretest: 'node client/build.ts --check' })
})

await test('the paths, bodies, problem codes and close codes match those of the server', async (t) => {
  for (const [name, text] of Object.entries(generatedSources())) {
    t.equal(await readFile(join(CLIENT, 'src/core/generated', name), 'utf8'), text, `npm run build:client: ${name}`)
  }
})

await test('subscribe() refuses exactly the operations that change something, and unknown ones', async (t) => {
  const source = await readFile(new URL('../../src/sockets/operations.ts', import.meta.url), 'utf8')
  const known = /`(active_symbols[^`]*)`/.exec(source)?.[1]?.split(/\s+/) ?? []
  const client = createClient({ baseUrl: 'http://127.0.0.1:9' })
  t.teardown(() => client.close())
  const socket = client.publicSocket()
  const refused = [...known, 'unknown_operation'].filter((operation) => {
    try {
      untyped(socket).subscribe({ [operation]: 1 }, () => undefined)()
      return false
    } catch (error) {
      return error instanceof TypeError
    }
  })
  const CHANGING = 'buy sell cancel contract_update auto_start auto_pause auto_resume auto_stop'
  t.same(refused, [...CHANGING.split(' '), 'unknown_operation'])
})

await test('no other entry sees the members of the core whose names are shortened', async (t) => {
  const [, names = ''] =
    /MEMBERS_OF_CORE =\s+\/\^\((.+)\)\$\//.exec(await readFile(join(CLIENT, 'build.ts'), 'utf8')) ?? []
  const member = new RegExp(`(?<![#\\w])(${names})\\b(?!\\()`, 'g')
  t.match('order.mayRepeat', member)
  for (const path of await modulesIn(join(CLIENT, 'src'))) {
    if (path.startsWith('core/')) continue
    const code = (await readFile(join(CLIENT, 'src', path), 'utf8')).replaceAll(
      /^import .*|^ *(?:\/\*)?\*.*|\/\/.*/gm,
      '',
    )
    t.same(code.match(member), null, path)
  }
})

await test('the whole core has at most 10 KiB and the session part at most 2,310 bytes, minified and gzipped', async (t) => {
  const whole = await sizeOf(`export * from './client.js'`)
  const session = await sizeOf(`export { createSession } from './client.js'`)
  const series = await sizeOf(`export * from './client/series.js'`)
  const orders = await sizeOf(`export * from './client/orders.js'`)
  const sessions = await sizeOf(`export * from './client/sessions.js'`)
  const server = await sizeOf(`export * from './server.js'`)
  t.comment(
    `the core ${whole} bytes, the session part ${session}, series ${series}, orders ${orders}, sessions ${sessions}, server ${server}`,
  )
  t.ok(server <= KIB, `${server} bytes`)
  t.ok(sessions <= 600, `${sessions} bytes`)
  t.ok(orders <= 4.5 * KIB, `${orders} bytes`)
  t.ok(series <= 2.75 * KIB, `${series} bytes`)
  t.ok(whole <= 10 * KIB, `${whole} bytes`)
  t.ok(session <= 2310, `${session} bytes`)
  // A page without a bundler loads the file itself.
  const file = gzipSync(await readFile(join(CLIENT, 'dist/client.js'))).length
  t.ok(file <= 10 * KIB, `client.js has ${file} bytes`)
})

await test('npm pack makes a package for bundlers, TypeScript and Node.js, and a single file for pages without a bundler', async (t) => {
  const dir = t.testdir()
  const { tarball, files } = await packed()
  t.ok(files.includes('dist/client.js') && files.includes('dist/client.d.ts') && files.includes('README.md'))
  const installed = join(dir, 'node_modules/trading-bff-client')
  await mkdir(installed, { recursive: true })
  await run(dir, 'tar', '-xzf', tarball, '-C', installed, '--strip-components=1')

  await writeFile(join(dir, 'package.json'), '{"type":"module"}')
  await writeFile(
    join(dir, 'page.ts'),
    `import { ApiError, createClient, SocketError, type SessionState } from 'trading-bff-client'
import { fate } from 'trading-bff-client/orders'
import { endSession, listSessions } from 'trading-bff-client/sessions'
import { useSession } from 'trading-bff-client/react'
import { sessionFor } from 'trading-bff-client/server'
import { createFakeClient } from 'trading-bff-client/testing'
const client = Math.random() < 0.5 ? createClient() : createFakeClient()
const state: SessionState = useSession(client)
if (state.status === 'active') console.log(new Date(state.expiresAt), state.scope)
const json = { data: { to_nickname: 'somebody', amount: '1.00', currency: 'USD' } }
client.api('/payment-agents/v1/transfer', { method: 'POST', json, idempotencyKey: true }).catch((error: unknown) => {
  if (error instanceof ApiError && error.problem?.code === 'login_required') client.login()
})
sessionFor(new Request('https://page.example/'), { baseUrl: 'https://bff.example' }).then((session) => {
  if (session) console.log(session.scope, session.expiresAt)
})
listSessions(client).then(([first]) => {
  if (first && !first.isCurrent) return endSession(client, first.tag)
})
client.tradingSocket('CR1').command({ buy: 'a-proposal', price: 10 }).catch(async (error: unknown) => {
  const found = error instanceof SocketError && error.outcome ? await fate(error) : undefined
  if (found?.is === 'made') console.log(found.contract.contract_id)
  else if (found?.is === 'not_seen') console.log(new Date(found.since))
  else if (found) console.log(found.candidates.length)
})
`,
  )
  const strict = '--ignoreConfig --strict --noEmit --target es2022 --lib es2022,dom --skipLibCheck false'
  for (const modules of ['nodenext --moduleResolution nodenext', 'esnext --moduleResolution bundler']) {
    await t.resolves(compile([...`${strict} --module ${modules} --types`.split(' '), '', 'page.ts'], dir))
  }
  t.ok((await sizeOf(`export { createClient } from 'trading-bff-client'`, dir)) > KIB)
  const script = `import('trading-bff-client').then(({ createClient }) => console.log(createClient().session.get().status))`
  t.equal(await run(dir, 'node', '-e', script), 'unknown')
  // A page without a bundler loads this file alone.
  t.notMatch(await readFile(join(installed, 'dist/client.js'), 'utf8'), /\bimport\b\s*["'{*]|\bfrom\s*["']/)
})
