import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { WebSocketRoute } from 'playwright-core'
import { test } from 'tap'
import { sendForm, testChromium } from '../support/browser/chromium.ts'
import { installed } from '../support/recipes/recipe.ts'
import { until } from '../support/time/until.ts'
import { startWorld } from '../support/world.ts'

const PROPOSAL = {
  proposal: 1,
  contract_type: 'CALL',
  underlying_symbol: 'R_100',
  amount: 10,
  basis: 'stake',
  currency: 'USD',
  duration: 5,
  duration_unit: 'm',
}
/** A page that shows a price, trades on an account, and notes what became of its orders. */
const PAGE = `
import { keepConnected, order } from './connection.js'

const output = document.querySelector('output')
keepConnected('/ws/public', (api) => api.subscribe({ ticks: 'R_100' }).subscribe(({ tick }) => (output.textContent = tick.quote)), Boolean)
globalThis.ends = []
globalThis.apis = []
globalThis.told = []
globalThis.trade = async () => {
  const response = await fetch('/api/trading/v1/options/accounts', { headers: { 'X-CSRF': '1' } })
  const [account] = (await response.json()).data
  keepConnected('/ws/trading/' + account.account_id, (api) => apis.push(api), (code) => ends.push(code))
}
globalThis.buy = async () => {
  const api = apis.at(-1)
  const { proposal } = await api.send(${JSON.stringify(PROPOSAL)})
  const message = { buy: proposal.id, price: proposal.ask_price }
  return order(api, message).then(({ buy }) => (told.push('made'), buy.contract_id), ({ outcome }) => told.push(outcome))
}
globalThis.buyLate = () => order(apis.at(-1), { buy: '1', price: 1 }).catch(({ outcome }) => outcome)
globalThis.settled = []
globalThis.askLate = () => void apis.at(-1).send({ time: 1 }).finally(() => settled.push('of the library alone'))`
const HTML = '<!doctype html><title>Page</title><output></output><script type="module" src="/src/main.js"></script>'

await test('docs/examples/deriv-api: prices go on after a restart, an order is sent once, and a logout ends it', async (t) => {
  const { dir, run } = await installed(t, 'deriv-api')
  await writeFile(join(dir, 'index.html'), HTML)
  await writeFile(join(dir, 'src/main.js'), PAGE)
  await run('vite', 'build')
  const { server } = await startWorld(t, { settings: { STATIC_DIR: join(dir, 'dist') } })
  const page = await (await testChromium(t)).newPage()
  const sockets: { path: string; route: WebSocketRoute }[] = []
  const sent: string[] = []
  let losesAnswer = false
  let isSilent = false
  await page.routeWebSocket('**/ws/*', (route) => sockets.push(relayed(route)))
  await page.routeWebSocket('**/ws/trading/*', (route) => sockets.push(relayed(route)))
  function relayed(route: WebSocketRoute): { path: string; route: WebSocketRoute } {
    const there = route.connectToServer()
    route.onMessage((message) => {
      sent.push(String(message))
      there.send(message)
    })
    there.onMessage((message) => {
      if (isSilent) return
      if (losesAnswer && String(message).includes('"msg_type":"buy"')) void route.close({ code: 1012 })
      else route.send(message)
    })
    return { path: new URL(route.url()).pathname, route }
  }
  const latest = (path: string) => sockets.findLast((socket) => socket.path.startsWith(path))

  await page.clock.install()
  await page.goto(`${server.url}/auth/login`)
  await sendForm(page)
  await page.locator('output', { hasText: /^\d/ }).waitFor()

  t.comment('a restart of the server')
  await latest('/ws/public')?.route.close({ code: 1012, reason: 'shutting_down;retry_after=7' })
  await page.evaluate(`output = document.querySelector('output'), output.textContent = ''`)
  await page.clock.runFor(6000)
  t.equal(sockets.length, 1, 'it waits as long as the server says')
  await page.clock.runFor(3000)
  await page.locator('output', { hasText: /^\d/ }).waitFor()

  t.comment('orders')
  await page.evaluate('trade()')
  await until(() => page.evaluate<boolean>('apis.length === 1'))
  t.type(await page.evaluate('buy()'), 'number')
  losesAnswer = true
  await page.evaluate('buy()')
  t.equal(await page.evaluate('buyLate()'), 'not_sent')
  await page.evaluate('askLate()')
  losesAnswer = false
  await page.clock.runFor(2000)
  await until(() => page.evaluate<boolean>('apis.length === 2'))
  t.same(await page.evaluate('told'), ['made', 'unknown'])
  const { portfolio } = await page.evaluate<{ portfolio: { contracts: unknown[] } }>(
    'apis.at(-1).send({ portfolio: 1 })',
  )
  t.equal(portfolio.contracts.length, 2)
  t.equal(sent.filter((message) => message.includes('"buy"')).length, 2)

  t.same(await page.evaluate('settled'), [], 'the library says nothing about what it has not sent')

  t.comment('a hidden page, whose timers come once a minute')
  const alive = sockets.length
  for (let minute = 0; minute < 3; minute++) {
    const pings = sent.filter((message) => message.includes('"ping"')).length
    await page.clock.fastForward(60_000)
    await until(() => sent.filter((message) => message.includes('"ping"')).length === pings + 2, 'both sockets ask')
    // The replies arrive.
    await page.evaluate('Promise.all(apis.slice(-1).map((api) => api.send({ time: 1 })))')
  }
  t.equal(sockets.length, alive, 'no connection is taken for a dead one')

  t.comment('silence')
  isSilent = true
  const late = page.evaluate('buyLate()')
  const asked = sent.filter((message) => message.includes('"ping"')).length
  await until(() => sent.filter((message) => message.includes('"ping"')).length > asked)
  await page.clock.runFor(1000)
  t.equal(await late, 'not_sent')
  const before = sockets.length
  await page.clock.runFor(18_000)
  t.ok(sent.filter((message) => message.includes('"ping"')).length > 3)
  t.equal(sockets.length, before)
  await page.clock.runFor(10_000)
  isSilent = false
  await until(() => sockets.length > before)

  t.comment('a logout')
  await until(() => page.evaluate<boolean>('apis.length === 3'))
  await page.evaluate(`fetch('/auth/logout', { method: 'POST', headers: { 'X-CSRF': '1' } })`)
  await until(() => page.evaluate<boolean>('ends.length > 0'))
  const trading = sockets.filter(({ path }) => path.startsWith('/ws/trading')).length
  await page.clock.runFor(60_000)
  t.same(await page.evaluate('ends'), [4401])
  t.equal(sockets.filter(({ path }) => path.startsWith('/ws/trading')).length, trading, 'it does not come back')
})
