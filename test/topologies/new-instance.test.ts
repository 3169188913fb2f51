import { test } from 'tap'
import type { RedisProcess } from '../../sandbox/redis-process.ts'
import { CONTROLS_KEY } from '../../src/store/keys.ts'
import { controlsWorld, pause } from '../support/controls/controls-world.ts'
import { askRedis, testMasters } from '../support/redis/topologies.ts'
import { ACCOUNTS } from '../support/user.ts'

const BUY = '{"buy":"a proposal","price":1,"req_id":7}'
const READ = '{"ticks":"R_100"}'

/** The server of a Cluster that has the controls. */
async function holderOf(nodes: readonly RedisProcess[]): Promise<RedisProcess> {
  for (const node of nodes) {
    const reply = await askRedis(node, ['EXISTS', CONTROLS_KEY]).catch(() => 0)
    if (String(reply) === '1') return node
  }
  throw new Error('no server has the controls')
}

await test('an instance that starts while the master of a Cluster that has the controls is away serves the sessions of the others, and sends no order', async (t) => {
  const nodes = await testMasters(t, 3)
  const settings = { REDIS_URL: nodes.map(({ url }) => url).join(','), IDEMPOTENCY_REPLICAS: '0' }
  const world = await controlsWorld(t, { instances: 1, redis: false, settings })
  const { server, orders, trade } = world
  const users = []
  for (let count = 0; count < 12; count++) users.push(await world.user(`CR${count}`))
  t.equal((await pause(server)).status, 200)
  await (await holderOf(nodes)).close()
  const late = await world.instance()
  const reads = await Promise.all(users.map((user) => user.call('GET', ACCOUNTS, { at: late })))
  const served = users.filter((_user, at) => reads[at]?.status === 200)
  const [first] = served
  if (first === undefined) return t.fail('no session is on the other masters')
  for (const user of served) {
    t.match(await user.order({ at: late }), {
      status: 503,
      json: { code: 'session_store_unavailable' },
      headers: { 'retry-after': '1' },
    })
    t.match(await user.order({ at: server }), { status: 503, json: { code: 'orders_paused' } })
  }
  const { browser, seen } = await trade(first, late)
  browser.socket.send(READ)
  browser.socket.send(BUY)
  await browser.count(1)
  t.match(JSON.parse(browser.texts[0] ?? ''), { req_id: 7, error: { code: 'OrdersPaused' } })
  t.equal((await pause(late, { message: 'told by an operator' })).status, 503)
  t.match(await first.order({ at: late }), {
    status: 503,
    json: { code: 'orders_paused', detail: 'told by an operator' },
  })
  t.same([seen, orders], [[READ], []])
})
