import { test } from 'tap'
import { devtoolsPage, holds, press, TRADE } from '../support/client/devtools-page.ts'
import { until } from '../support/time/until.ts'

await test('Offline: calls are not sent, sockets are noticed to be dead, and all is back afterwards', async (t) => {
  const { page, world } = await devtoolsPage(t)
  await page.evaluate(TRADE)
  await press(page, 'Offline')
  t.equal(await page.evaluate('navigator.onLine'), false)
  const asked: string[] = []
  page.on('request', (each) => asked.push(each.url()))
  const order = `client.api('/payment-agents/v1/transfer', { method: 'POST', json: {} }).catch(({ code }) => code)`
  t.equal(await page.evaluate(order), 'not_sent')
  t.equal(await page.evaluate(`client.api('/v1/health').catch(({ status }) => status)`), 0)
  t.same(asked, [], 'nothing was sent')
  await holds(page, `trading.status().state !== 'open'`)
  t.equal(await page.evaluate(`trading.command({ sell: 1, price: 1 }).catch(({ code }) => code)`), 'not_sent')
  await holds(page, `trading.status().state === 'waiting'`)
  t.equal((await world.metric('bff_relays')).get('kind="demo"'), 0, 'the server sees the connection end')
  await press(page, 'Offline')
  t.equal(await page.evaluate('navigator.onLine'), true)
  await holds(page, `trading.status().state === 'open'`)
  t.equal(await page.evaluate(`client.api('/v1/health').then(({ status }) => status)`), 200)
})

await test('Slow: what arrives is two seconds late and in its order, also when it is fast again meanwhile', async (t) => {
  const { page } = await devtoolsPage(t)
  await page.evaluate(TRADE)
  await press(page, 'Slow')
  const took = await page.evaluate<number>(`(async () => {
    const startedAt = performance.now()
    await client.api('/v1/health')
    return performance.now() - startedAt
  })()`)
  t.ok(took >= 1990, `${took} ms`)
  const order = await page.evaluate<number[]>(`(async () => {
    const order = []
    const ask = (number) => trading.request({ ping: 1 }).then(() => order.push(number))
    const first = [1, 2, 3].map(ask)
    // Meanwhile the answers arrive, and are kept back.
    await new Promise((resolve) => setTimeout(resolve, 700))
    const buttons = document.querySelector('trading-bff-devtools').shadowRoot.querySelectorAll('button')
    buttons[1].click()
    await Promise.all([...first, ask(4)])
    return order
  })()`)
  t.same(order, [1, 2, 3, 4])
  await page.locator('button[aria-pressed=false]', { hasText: 'Slow' }).waitFor()
  await press(page, 'Slow')
  const early = await page.evaluate<string>(`(async () => {
    const market = client.publicSocket()
    globalThis.time = market.request({ time: 1 })
    await new Promise((resolve) => setTimeout(resolve, 1000))
    const { shadowRoot } = document.querySelector('trading-bff-devtools')
    return [...shadowRoot.querySelectorAll('.paths > li')].find((each) => each.innerText.includes('/ws/public')).innerText
  })()`)
  t.match(early, /connecting.* 0 out/s, 'nothing is sent before the page knows that the connection is open')
  t.ok(await page.evaluate('time.then(({ time }) => time > 0)'))
  await press(page, 'Slow')
})

await test('Lose the next answer: the order is executed, once, and its outcome is unknown; the one after is answered', async (t) => {
  const { page, part } = await devtoolsPage(t)
  await page.evaluate(TRADE)
  await page.evaluate(`globalThis.buy = async () => {
    const terms = { amount: 10, basis: 'stake', contract_type: 'CALL', currency: 'USD', duration: 5, duration_unit: 'm' }
    const { proposal } = await trading.request({ proposal: 1, underlying_symbol: 'R_100', ...terms })
    const bought = await trading.command({ buy: proposal.id, price: proposal.ask_price }).catch((error) => error)
    return bought.outcome ?? Object.keys(bought.buy)[0]
  }`)
  await press(page, 'Lose the next answer')
  await page.evaluate(`trading.request({ ping: 1 })`)
  t.equal(
    await page.getByRole('button', { name: 'Lose the next answer' }).getAttribute('aria-pressed'),
    'true',
    'no order yet',
  )
  t.equal(await page.evaluate('buy()'), 'unknown')
  await holds(page, `trading.status().state === 'open'`)
  const open = `trading.request({ portfolio: 1 }).then(({ portfolio }) => portfolio.contracts.length)`
  t.equal(await page.evaluate(open), 1, 'it was executed')
  await page.locator('button[aria-pressed=false]', { hasText: 'Lose the next answer' }).waitFor()
  t.notMatch(await page.evaluate('buy()'), 'unknown')
  t.equal(await page.evaluate(open), 2)

  await press(page, 'Lose the next answer')
  const create = `client.api('/trading/v1/options/accounts', { method: 'POST', json: { currency: 'USD', group: 'row', account_type: 'demo' } })
    .then(({ status }) => status, ({ outcome }) => outcome)`
  t.equal(await page.evaluate(create), 'unknown')
  t.match(await page.evaluate(create), /^20\d$/)
  await until(async () => /no response POST .*It may have been executed/s.test(await part('Problems')), 'what it means')
})

await test('Session ended: to this page it has, with its sockets and calls, and the real session goes on', async (t) => {
  const { page, part } = await devtoolsPage(t)
  await page.evaluate(TRADE)
  await press(page, 'Session ended')
  await holds(page, `client.session.get().status === 'anonymous'`)
  t.equal(await page.evaluate('client.session.get().reason'), 'idle')
  await holds(page, `trading.status().state === 'ended'`)
  t.equal(
    await page.evaluate(`client.api('/trading/v1/options/accounts').catch(({ code }) => code)`),
    'session_expired',
  )
  t.equal(await page.evaluate(`client.api('/v1/health').then(({ status }) => status)`), 200)
  await until(
    async () => /4401 session_expired .*The session has ended\. Show the login\./s.test(await part('Problems')),
    'what it means',
  )
  t.match(await part('Session'), /anonymous, ended: idle\s+Told by\s+GET \/auth\/session/)
  await press(page, 'Session ended')
  await holds(page, `client.session.get().status === 'active'`)
  await page.evaluate(TRADE)
})
