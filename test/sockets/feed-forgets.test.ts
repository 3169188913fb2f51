import { test } from 'tap'
import { feedWorld, tick } from '../support/feed-world.ts'
import { until } from '../support/until.ts'

await test('a browser that leaves before the answer to its forget_all leaves no subscription behind', async (t) => {
  const { market, join, metric } = await feedWorld(t, { FEED_LINGER_SECONDS: '0' })
  const browser = await join()
  browser.send({ ticks: 'R_1', subscribe: 1, req_id: 1 })
  browser.send({ forget_all: 'ticks', req_id: 2 })
  const request = await market.next('ticks')
  const taken = async (): Promise<unknown> => (await metric('bff_relay_operations_total')).get('operation="forget_all"')
  await until(async () => (await taken()) === 1, 'the server has the forget_all')
  const subscribers = async (): Promise<number | undefined> => (await metric('bff_feed_subscribers')).get('')
  t.equal(await subscribers(), 1)
  browser.client.socket.terminate()
  await until(async () => (await subscribers()) === 0, 'nobody has the stream')
  const other = await join()
  other.send({ ticks: 'R_1', subscribe: 1, req_id: 3 })
  t.same(await other.rest(), [])
  tick(request, 1, 1, 'id-1')
  t.match(await other.next(), { req_id: 3, tick: { quote: 1 } })
  t.match(await other.ask({ forget: 'id-1' }), { forget: 1 })
  t.ok(await market.next('forget', 'id-1'), 'the stream ends with its last browser')
})
