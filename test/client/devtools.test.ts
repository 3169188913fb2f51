import { readFile } from 'node:fs/promises'
import { test } from 'tap'
import { createClient } from '../../client/dist/client.js'
import { devtoolsPage, holds, partOf, press, TRADE } from '../support/client/devtools-page.ts'
import { until } from '../support/time/until.ts'

await test('the panel shows the session and who told of it, the sockets with streams and queues, and every frame', async (t) => {
  const { page, part, errors } = await devtoolsPage(t)
  const account = await page.evaluate<string>(TRADE)
  await page.evaluate(`trading.subscribe({ balance: 1 }, () => {})`)
  await page.evaluate(
    `client.publicSocket().subscribe({ ticks: 'R_100' }, () => (globalThis.ticks = (globalThis.ticks ?? 0) + 1))`,
  )
  await holds(page, 'globalThis.ticks > 2')
  const session = await page.evaluate<{ session: string }>('client.session.get()')
  await until(async () => (await part('Session')).includes(session.session), 'the tag of the session')
  t.match(await part('Session'), /State\s+active\s+Told by\s+(GET \/auth\/session|the session socket), \d+ s ago/)
  t.match(await part('Session'), /Session socket\s+kept by this tab/)
  await until(async () => /\{"ticks":"R_100"\} [3-9]\d* messages/.test(await part('Sockets')), 'the stream')
  const sockets = await part('Sockets')
  for (const text of ['/ws/public', `/ws/trading/${account}`, '/ws/session', '{"balance":1}', ' 0 bytes unsent']) {
    t.ok(sockets.includes(text), text)
  }
  t.match(sockets, /Latency\s+\d+ ms/)
  t.match(await part('Calls'), /GET \/api\/trading\/v1\/options\/accounts\s+200\s+\d+ ms/)
  const frame = page.locator('tr', { hasText: /received.*tick/s }).last()
  await frame.locator('summary').focus()
  await page.keyboard.press('Enter')
  t.match(await frame.locator('pre').innerText(), /"msg_type": "tick"/)
  t.same(errors, [], 'the Content-Security-Policy allows all that the panel does')
})

await test('the panel keeps the last 200 frames, in this page alone, and shows those that the user looks for', async (t) => {
  const { page, part } = await devtoolsPage(t)
  await page.evaluate(`(async () => {
    globalThis.market = client.publicSocket()
    for (let sent = 0; sent < 150; sent++) await market.request({ time: 1 })
  })()`)
  const rows = page.locator('.frames tbody tr')
  await until(async () => (await rows.count()) === 200, 'the last 200 rows')
  await page.getByRole('searchbox').fill('"event":"session"')
  await until(async () => (await rows.count()) <= 2, 'what was looked for')
  await page.getByRole('searchbox').fill('')
  await press(page, 'Hold')
  const newest = await rows.first().innerText()
  await page.evaluate('market.request({ active_symbols: "brief" })')
  await until(async () => (await part('Sockets')).includes('152 frames in'), 'the panel is drawn again')
  t.equal(await rows.first().innerText(), newest, 'nothing moves under the eyes of the user')
  await press(page, 'Hold')
  await rows.first().getByText('active_symbols').first().waitFor()
  await page.evaluate(`market.request({ ticks_history: 'R_100', style: 'ticks', count: 5000, end: 'latest' })`)
  const long = page.locator('tr', { hasText: /received/ }).first()
  await long.locator('strong', { hasText: /^history$/ }).waitFor()
  t.match(await long.locator('pre').textContent(), / characters\)$/, 'one that is cut off has its name')
  const stored = `JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])`
  t.equal(await page.evaluate(stored), '[{},{},""]')
  t.same(await page.evaluate(`indexedDB.databases()`), [])
})

await test('in a second tab, the first one has told of what it hears, such as a notice of the operator', async (t) => {
  const token = 'an-ops-token-of-32-bytes-or-longer'
  const { page, part, world } = await devtoolsPage(t, 'index', { OPS_TOKEN: token })
  await until(async () => /Session socket\s+kept by this tab/.test(await part('Session')))
  const second = await page.context().newPage()
  await second.goto(page.url())
  await holds(second, `globalThis.client?.session.get().status === 'active'`)
  const first = /Told by\s+GET \/auth\/session.*Session socket\s+none in this tab/s
  await until(async () => first.test(await partOf(second, 'Session')), 'the server has told the second tab')
  await fetch(`${world.server.opsUrl}/controls/notice`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ message: 'Back at noon.' }),
  })
  await until(
    async () => /Told by\s+another tab.*Back at noon/s.test(await partOf(second, 'Session')),
    'the second tab',
  )
  await until(async () => /Told by\s+the session socket.*Back at noon/s.test(await part('Session')), 'the first tab')
})

await test('for the Tab key, the frames are one stop, and the arrow keys lead from one to the next', async (t) => {
  const { page } = await devtoolsPage(t)
  await page.evaluate(`{
    const link = Object.assign(document.createElement('a'), { href: '/', textContent: 'After the panel' })
    document.body.append(link)
    globalThis.market = client.publicSocket()
  }`)
  for (let sent = 0; sent < 3; sent++) await page.evaluate('market.request({ time: 1 })')
  await page.locator('.frames tbody tr').nth(5).waitFor()
  // More frames would move the rows.
  await page.evaluate('market.close()')
  const focused = `document.activeElement.shadowRoot?.activeElement`
  await page.getByRole('button', { name: 'Clear all logs' }).focus()
  await page.keyboard.press('Tab')
  t.equal(await page.evaluate(`${focused}.getAttribute('role')`), 'region')
  await page.keyboard.press('Tab')
  const row = `[...${focused}.closest('tbody').children].indexOf(${focused}.closest('tr'))`
  t.equal(await page.evaluate(row), 0)
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowUp')
  t.equal(await page.evaluate(row), 1)
  await page.keyboard.press('Enter')
  t.equal(await page.evaluate(`${focused}.parentElement.open`), true)
  await page.keyboard.press('Tab')
  t.equal(await page.evaluate('document.activeElement.textContent'), 'After the panel')
  await page.keyboard.press('Shift+Tab')
  t.equal(await page.evaluate(`${focused}.localName`), 'summary', 'back where it was')
})

await test('a panel that is loaded after the client sees it from then on', async (t) => {
  const { page, part } = await devtoolsPage(t, 'late')
  await page.evaluate('first')
  await page.evaluate(`client.api('/account/v1/nickname')`)
  await until(async () => (await part('Calls')).includes('/api/account/v1/nickname'))
  t.notMatch(await part('Calls'), '/api/v1/health')
  await page.evaluate('client.close()')
  await until(async () => (await part('Session')).includes('No client yet'), 'a client that is closed is gone')
})

await test('without debug, a client is no different: nothing knows of it', async (t) => {
  createClient().close()
  createClient({ debug: false }).close()
  t.notOk('tradingBff' in globalThis)
  const source = await readFile(new URL('../../client/dist/client.js', import.meta.url), 'utf8')
  t.equal(source.split('tradingBff').length, 2, 'it is named once')
})

await test('where the browser refuses the page a channel to other tabs, the client and the panel work all the same', async (t) => {
  const { page, part, errors } = await devtoolsPage(t)
  // Firefox does so where the user blocks cookies.
  await page.addInitScript(
    `BroadcastChannel = function () { throw new DOMException('The operation is insecure.', 'SecurityError') }`,
  )
  await page.reload()
  await holds(page, `globalThis.client?.session.get().status === 'active'`)
  await until(async () => /State\s+active/.test(await part('Session')), 'the session')
  t.same(errors, [])
})
