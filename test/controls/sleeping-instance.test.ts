import { setTimeout as delay } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { controlsWorld, pause } from '../support/controls/controls-world.ts'
import { ready, serverProcess } from '../support/server/server-process.ts'
import { until } from '../support/time/until.ts'

const BUY = '{"buy":"a proposal","price":1}'
const READ = '{"balance":1}'
/** All instances obey a pause, and close the sockets of a session that has ended, within this time. */
const OBEYED_MS = 1000

/** An instance that sleeps from now on, another one, and a user who trades at the first. */
async function sleepingInstance(t: Test) {
  const world = await controlsWorld(t, { instances: 1 })
  const { server } = world
  const { child, port, ...rest } = await serverProcess(t, world.settings)
  t.ok(await ready({ child, port, ...rest }))
  const asleep = { ...server, port }
  const user = await world.user('anna')
  const trading = await world.trade(user, asleep)
  t.equal((await user.order({ at: asleep, body: 'before' })).status, 200)
  child.kill('SIGSTOP')
  return { world, server, asleep, user, ...trading, wakeUp: () => child.kill('SIGCONT') }
}

await test('Orders that an instance gets while it sleeps are not sent when it wakes up during a pause', async (t) => {
  const { world, server, asleep, user, browser, seen, wakeUp } = await sleepingInstance(t)
  t.equal((await pause(server)).status, 200)
  await delay(OBEYED_MS)
  const call = user.order({ at: asleep, body: 'late' })
  browser.socket.send(BUY)
  browser.socket.send(READ)
  wakeUp()
  await until(() => seen.includes(READ), 'what is no order passes')
  t.notOk(seen.includes(BUY))
  t.match((await browser.count(1))[0]?.data.toString(), 'OrdersPaused')
  t.equal((await call).status, 503)
  t.same(world.orders, ['before'])
})

await test('Messages that an instance gets while it sleeps are not sent when it wakes up after a logout', async (t) => {
  const { world, asleep, user, browser, seen, wakeUp } = await sleepingInstance(t)
  t.equal((await user.logOut()).status, 204)
  await delay(OBEYED_MS)
  const call = user.order({ at: asleep, body: 'late' })
  browser.socket.send(BUY)
  wakeUp()
  t.match(await browser.closed, { code: 4401 })
  t.same(seen, [])
  t.equal((await call).status, 401)
  t.same(world.orders, ['before'])
})
