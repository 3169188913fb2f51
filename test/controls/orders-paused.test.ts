import { test } from 'tap'
import { control, controlsWorld, pause, shown } from '../support/controls/controls-world.ts'
import { until } from '../support/time/until.ts'
import { samplesOf } from '../support/telemetry/metrics.ts'
import { ACCOUNTS } from '../support/user.ts'

await test('PUT /controls/orders stops POST and PATCH on all instances, and DELETE lifts it; GET goes on', async (t) => {
  const world = await controlsWorld(t)
  const { servers, orders } = world
  const [first, second, third] = servers
  const user = await world.user('CR1')
  for (const server of servers) t.equal((await user.order({ at: server })).status, 200)
  const answer = await pause(second, { message: 'Prices are wrong. Please wait.' })
  t.match(answer, { status: 200, json: { version: Number } })
  t.equal((await user.order({ at: second })).status, 503, 'at once where it was answered')
  await world.agreed(answer.json['version'])
  for (const server of servers) {
    const { status, json, headers } = await user.order({ at: server })
    t.match(
      { status, json },
      { status: 503, json: { code: 'orders_paused', detail: 'Prices are wrong. Please wait.' } },
    )
    t.notOk('retry-after' in headers)
    t.equal((await user.call('GET', ACCOUNTS, { at: server })).status, 200)
  }
  t.equal(orders.length, 3)
  const lifted = await control(third, 'DELETE', '/orders')
  t.equal(lifted.status, 200)
  t.ok(Number(lifted.json['version']) > Number(answer.json['version']))
  await world.agreed(lifted.json['version'])
  for (const server of servers) t.equal((await user.order({ at: server })).status, 200)
  t.match(await samplesOf(second.opsUrl, 'bff_orders_paused_refusals_total'), new Map([['by="call"', 2]]))
  const changed = second.log.find(({ audit }) => audit === 'controls_changed')
  t.match(changed, {
    control: 'orders',
    action: 'set',
    controlsVersion: answer.json['version'],
    text: 'Prices are wrong. Please wait.',
    client: '127.0.0.1',
  })
  t.notOk(changed && 'outcome' in changed)
  t.match(
    third.log.find(({ audit }) => audit === 'controls_changed'),
    { action: 'lifted', controlsVersion: lifted.json['version'] },
  )
  t.equal(await shown(first).then(({ orders: paused }) => paused), null)
})

await test('open trading sockets of all instances pass reads and refuse orders as upstream would', async (t) => {
  const world = await controlsWorld(t)
  const { servers } = world
  const user = await world.user('CR1')
  // One after the other, so that each browser gets its own peer.
  const sockets = []
  for (const server of servers) sockets.push(await world.trade(user, server))
  const buy = '{"buy":"abc","price":1,"req_id":7,"passthrough":{"a":1}}'
  const sell = '{"sell":1,"price":0,"req_id":8}'
  await world.agreed((await pause(servers[0], { message: 'Wait.' })).json['version'])
  for (const { browser, seen } of sockets) {
    browser.socket.send(buy)
    browser.socket.send(sell)
    browser.socket.send('{"ping":1}')
    await until(() => seen.length === 2)
    t.same(seen, [sell, '{"ping":1}'])
    t.same(JSON.parse((await browser.count(1))[0]?.data.toString() ?? ''), {
      echo_req: JSON.parse(buy),
      req_id: 7,
      passthrough: { a: 1 },
      error: { code: 'OrdersPaused', message: 'Wait.' },
      msg_type: 'buy',
    })
  }
  await world.agreed((await pause(servers[1], { closing: false })).json['version'])
  for (const { browser, seen } of sockets) {
    browser.socket.send(sell)
    t.match(JSON.parse((await browser.count(2))[1]?.data.toString() ?? ''), {
      req_id: 8,
      error: { code: 'OrdersPaused' },
    })
    t.equal(seen.length, 2)
  }
  await world.agreed((await control(servers[2], 'DELETE', '/orders')).json['version'])
  for (const { browser, seen } of sockets) {
    browser.socket.send(buy)
    await until(() => seen.length === 3)
    t.equal(seen[2], buy)
  }
})
