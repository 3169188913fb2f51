import { test } from 'tap'
import { logIn, testWorld } from '../support/world.ts'

await test('upstream budget: reads are refused first, orders last', async (t) => {
  const world = await testWorld(t, {
    redis: true,
    settings: { UPSTREAM_BUDGET: '40/5,60/20', UPSTREAM_BUDGET_ALONE: '0' },
  })
  const { server, browser } = world
  await logIn(browser, server.url)
  const get = () => browser.fetch(`${server.url}/api/trading/v1/options/accounts`, { headers: { 'x-csrf': '1' } })
  const post = () =>
    browser.fetch(`${server.url}/api/trading/v1/options/accounts`, {
      method: 'POST',
      headers: { 'x-csrf': '1', 'content-type': 'application/json' },
      body: '{}',
    })
  const statuses = []
  for (let i = 0; i < 25; i++) statuses.push((await get()).status)
  const orders = []
  for (let i = 0; i < 22; i++) orders.push((await post()).status)
  t.comment(statuses.join(' '), orders.join(' '))
  const refused = await get()
  t.comment(refused.status, refused.headers.get('retry-after'), await refused.text())
  t.comment(
    (await (await fetch(`${server.opsUrl}/metrics`)).text())
      .split('\n')
      .filter((l) => l.startsWith('bff_upstream_budget'))
      .join('\n'),
  )
})
