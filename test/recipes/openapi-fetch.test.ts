import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Route } from 'playwright-core'
import { test } from 'tap'
import { sendForm, testChromium } from '../support/browser/chromium.ts'
import { built } from '../support/recipes/built.ts'
import { installed } from '../support/recipes/recipe.ts'
import { startWorld } from '../support/world.ts'

const PATH = '/api/payment-agents/v1/transfer'
const PAGE = `import { api, find, isHealthy, transfer } from './api.ts'
const order = (request_id: string, amount = '1.00') => transfer({ to_nickname: 'somebody', amount, currency: 'USD', request_id })
const count = async () => (await api.GET('/api/trading/v1/options/accounts')).data?.data.length
Object.assign(globalThis, { count, find, isHealthy, order })`

await test('docs/examples/openapi-fetch: a transfer is made, refused or unknown, is sent once, and is found', async (t) => {
  const recipe = await installed(t, 'openapi-fetch')
  const STATIC_DIR = join(recipe.dir, 'dist')
  await mkdir(STATIC_DIR)
  await writeFile(join(STATIC_DIR, 'index.html'), '')
  const { server } = await startWorld(t, { settings: { STATIC_DIR } })
  await recipe.run('openapi-typescript', `${server.url}/openapi.json`, '-o', 'src/paths.ts')
  await built(recipe, PAGE)
  const page = await (await testChromium(t)).newPage()
  const keys: (string | undefined)[] = []
  page.on('request', (request) => {
    const { 'idempotency-key': key } = request.headers()
    if (request.method() === 'POST' && request.url().endsWith(PATH)) keys.push(key)
    else if (key !== undefined) t.fail(`${request.url()} has a key`)
  })
  await page.goto(`${server.url}/auth/login`)
  await sendForm(page)
  await page.waitForURL(`${server.url}/`)
  await page.waitForFunction(() => 'order' in globalThis)

  t.ok(Number(await page.evaluate('count()')) > 0)
  t.equal(await page.evaluate('isHealthy()'), true)
  t.same(await page.evaluate(`order('one')`), 'made')
  t.same(await page.evaluate(`order('two', '1000000')`), 'refused')
  t.same(await page.evaluate(`Promise.all([find('one'), find('two')])`), [true, false])

  const outcomes: readonly (readonly [outcome: string, isMade: boolean, answer: (route: Route) => Promise<void>])[] = [
    ['unknown', true, async (route) => (await route.fetch(), route.abort())],
    ['unknown', false, (route) => route.fulfill({ status: 502, body: 'Bad Gateway' })],
    ['unknown', false, (route) => route.fulfill({ status: 403, body: '' })],
    ['unknown', false, (route) => route.fulfill({ status: 403, json: { code: 'blocked' } })],
    ['unknown', false, (route) => route.fulfill({ status: 200, json: { welcome: true } })],
    ['unknown', false, (route) => route.fulfill({ status: 307, headers: { location: `${PATH}?again` } })],
    [
      'refused',
      false,
      (route) => route.fulfill({ status: 403, headers: { 'x-request-id': '1', 'content-length': '0' } }),
    ],
    ['refused', false, (route) => route.fulfill(problem(503, 'orders_paused'))],
    ['unknown', false, (route) => route.fulfill(problem(502, 'upstream_lost', { outcome: 'unknown' }))],
  ]
  for (const [index, [outcome, isMade, answer]] of outcomes.entries()) {
    await page.route(`**${PATH}`, answer, { times: 1 })
    t.equal(await page.evaluate(`order('lost-${index}')`), outcome, `answer ${index}`)
    t.equal(await page.evaluate(`find('lost-${index}')`), isMade)
  }
  t.equal(keys.length, 2 + outcomes.length, 'each was sent once')
  t.equal(new Set(keys).size, keys.length, 'and each has a key of its own')
  t.notOk(keys.includes(undefined))
})

function problem(status: number, code: string, more: object = {}): Parameters<Route['fulfill']>[0] {
  const body = JSON.stringify({ type: `/problems/${code}`, title: code, status, code, ...more })
  return { status, body, headers: { 'content-type': 'application/problem+json', 'x-request-id': '1' } }
}
