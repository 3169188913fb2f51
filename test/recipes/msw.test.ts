import { cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { sendForm, testChromium } from '../support/browser/chromium.ts'
import { run } from '../support/client/packed.ts'
import { built } from '../support/recipes/built.ts'
import { installed } from '../support/recipes/recipe.ts'
import { startWorld } from '../support/world.ts'

/** The same calls of the handlers, or of a server; prints what a page can tell of each response. */
const COMPARED = `
import { setupServer } from 'msw/node'
import { handlers, server } from './handlers.ts'

const [, , url = 'http://localhost:3000', cookie] = process.argv
if (cookie === undefined) setupServer(...handlers).listen({ onUnhandledFrame: 'error' })
const seen: unknown[] = []
async function call(method: string, path: string, headers: object, body?: object) {
  const response = await fetch(url + path, { method, headers: { ...headers, 'Content-Type': 'application/json', ...(cookie && server.isLoggedIn && { cookie }) }, body: JSON.stringify(body) })
  const answer = await response.json()
  const type = response.headers.get('content-type')?.split(';')[0]
  const isProblem = type === 'application/problem+json'
  seen.push({ call: method + ' ' + path, status: response.status, type, code: answer.code, members: (isProblem || path === '/auth/session') && Object.keys(answer).toSorted(),
    isNamed: isProblem ? answer.request_id === response.headers.get('x-request-id') : response.headers.has('x-request-id'), replayed: response.headers.get('idempotency-replayed') })
}
const CSRF = { 'X-CSRF': '1' }
const order = (amount: string) => ({ data: { to_nickname: 'somebody', amount, currency: 'USD' } })
server.isLoggedIn = false
await call('GET', '/auth/session', {})
await call('GET', '/api/trading/v1/options/accounts', CSRF)
server.isLoggedIn = true
await call('GET', '/api/trading/v1/options/accounts', {})
for (const [key, amount] of [['one', '1.00'], ['one', '1.00'], ['one', '2.00'], ['two', '2.00']]) {
  await call('POST', '/api/payment-agents/v1/transfer', { ...CSRF, 'Idempotency-Key': key }, order(amount!))
}
console.log(JSON.stringify(seen))
process.exit()`

/** A page, or a test, that uses the handlers. */
const USED = `
import { once, createClient } from 'trading-bff-client'
import { server } from './handlers.ts'

export async function use(baseUrl?: string) {
  const client = createClient({ baseUrl })
  const active = new Promise<void>((resolve) => void client.session.subscribe(() => client.session.get().status === 'active' && resolve()))
  await active
  const { data } = await (await client.api('/trading/v1/options/accounts')).json()
  server.losesNextAnswer = true
  const json = { data: { to_nickname: 'somebody', amount: '1.00', currency: 'USD' } }
  const answer = await once((idempotencyKey) => client.api('/payment-agents/v1/transfer', { method: 'POST', json, idempotencyKey }))
  const replayed = answer?.headers.get('idempotency-replayed')
  const lost = await client.api('/payment-agents/v1/transfer', (server.losesNextAnswer = true, { method: 'POST', json })).catch((error) => error.outcome)
  server.isLoggedIn = false
  const refused = await client.api('/trading/v1/options/accounts').catch((error) => error.code)
  client.close()
  return { accounts: data.length, replayed, transfers: server.transfers, lost, refused }
}`
const EXPECTED = { accounts: 1, replayed: 'true', transfers: 2, lost: 'unknown', refused: 'login_required' }

await test('docs/examples/msw: the handlers respond as the server does, in Node.js and in Chromium, where a login still works', async (t) => {
  const recipe = await installed(t, 'msw')
  const node = async (name: string, script: string, ...options: string[]): Promise<unknown> => {
    await writeFile(join(recipe.dir, 'src', name), script)
    return JSON.parse(await run(join(recipe.dir, 'src'), 'timeout', '30', process.execPath, name, ...options))
  }
  await writeFile(join(recipe.dir, 'src/used.ts'), USED)
  await cp(
    join(recipe.dir, 'node_modules/msw/lib/mockServiceWorker.js'),
    join(recipe.dir, 'public/mockServiceWorker.js'),
  )
  const page = `import { setupWorker } from 'msw/browser'
    import { handlers } from './handlers.ts'
    import { use } from './used.ts'
    const worker = setupWorker(...handlers)
    const start = (url: string) => worker.start({ serviceWorker: { url }, onUnhandledFrame: 'bypass' }).then(() => undefined)
    Object.assign(globalThis, { use, start })`
  const STATIC_DIR = await built(recipe, page)
  const world = await startWorld(t, { user: 'demo', settings: { STATIC_DIR } })

  await t.test('like the server', async (t) => {
    const real = await node('compared.ts', COMPARED, world.server.url, world.cookie)
    t.same(await node('compared.ts', COMPARED), real)
    t.match(real, [
      { status: 200 },
      { status: 401 },
      { status: 403 },
      { status: 201 },
      { status: 201, replayed: 'true' },
      { status: 422 },
      { status: 201 },
    ])
  })
  await t.test('in Node.js', async (t) => {
    const script = `import { setupServer } from 'msw/node'
      import { handlers } from './handlers.ts'
      import { use } from './used.ts'
      setupServer(...handlers).listen({ onUnhandledFrame: 'error' })
      console.log(JSON.stringify(await use('http://localhost:3000')))
      process.exit()`
    t.same(await node('in-node.ts', script), EXPECTED)
  })
  for (const worker of ['/worker.js', '/mockServiceWorker.js']) {
    await t.test(`in Chromium with ${worker}`, async (t) => {
      const page = await (await testChromium(t)).newPage()
      await page.goto(world.server.url)
      await page.evaluate(`start('${worker}')`)
      t.same(await page.evaluate('use()'), EXPECTED)
      const [response] = await Promise.all([page.waitForNavigation(), page.evaluate(`location.assign('/auth/login')`)])
      if (worker === '/mockServiceWorker.js') return t.equal(response?.status(), 403, 'the login is refused')
      await sendForm(page)
      await page.waitForURL(`${world.server.url}/`)
      t.ok((await page.context().cookies()).some(({ name }) => name === '__Host-session'))
    })
  }
})
