import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import { until } from '../support/time/until.ts'
import { answerJson } from '../support/upstream/scripted-upstream.ts'
import {
  BUY,
  ordersDuringPauses,
  ordersInTheDark,
  standstillWorld,
  type StandstillOptions,
} from '../support/sessions/standstill-world.ts'

/** Fifty take twenty minutes: `TRIES=50 npm test -- --timeout=1800 test/standstill/orders.long.test.ts`. */
const TRIES = Number(process.env['TRIES'] ?? 10)

for (const isCluster of [false, true]) {
  for (const isSuspended of [false, true]) {
    for (const hasOperators of [false, true]) {
      const options: StandstillOptions = { isCluster, isSuspended, hasOperators }
      await test(`nothing of a session that ended elsewhere is sent after a standstill: ${JSON.stringify(options)}`, (t) =>
        ordersInTheDark(t, options, TRIES))
    }
  }
}

for (const isSuspended of [false, true]) {
  await test(`no order is sent during a pause that was set while the process ${isSuspended ? 'was suspended' : 'was stopped'}`, (t) =>
    ordersDuringPauses(t, isSuspended, TRIES))
}

await test('an answer to an order that arrives while the process is stopped for six seconds is read and recorded', async (t) => {
  const settings = { UPSTREAM_HEADERS_SECONDS: '2', UPSTREAM_BODY_SECONDS: '3' }
  const world = await standstillWorld(t, { hasOperators: false, settings })
  const trader = await world.trader('CR1')
  const { onRest } = world.upstream
  world.upstream.onRest = (request, response) => {
    if (request.method === 'GET') return onRest(request, response)
    request.resume().on('end', () => {
      world.stop()
      answerJson(response, 201, { data: { made: true } })
      setTimeout(() => world.goOn(), 6000)
    })
  }
  for (let each = 0; each < TRIES; each++) {
    const keyed = { 'idempotency-key': `order ${each}` }
    t.equal(await trader.order('an order', keyed), 201)
    t.equal(await trader.order('an order', keyed), 201, 'it is replayed')
  }
})

for (const isCluster of [false, true]) {
  await test(`orders of a session that lives are sent after a standstill of six seconds, ${isCluster ? 'with a Cluster' : 'with one Redis'}`, async (t) => {
    const world = await standstillWorld(t, { hasOperators: true, isCluster })
    for (let each = 0; each < Math.min(TRIES, 5); each++) {
      const trader = await world.trader(`CR${each}`)
      const { browser, seen } = trader.socket
      world.stop()
      await delay(6000)
      browser.socket.send(BUY)
      const call = trader.order('late')
      await delay(150)
      world.goOn()
      t.equal(await call, 200)
      await until(() => seen.includes(BUY), 'the message is sent')
    }
  })
}
