import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { control, pause, shown } from '../support/controls/controls-world.ts'
import { IDENTITY } from '../support/login/identity.ts'
import { CommandProxy } from '../support/redis/command-proxy.ts'
import { SECRETS, testRedis, testServer, type TestServer } from '../support/server/test-server.ts'
import { ALONE } from '../support/server/settings.ts'
import { sideBySide } from '../support/time/side-by-side.ts'
import { until } from '../support/time/until.ts'

/** Longer than a server waits for a reply. */
const SILENT_MS = 10_000
const SLOW_MS = 800
/** Of the pause that must stay. */
const MESSAGE = 'later'

/** An instance behind a network that may fail, and another one. Both know of a pause. */
async function twoInstances(t: Test) {
  const redis = await testRedis(t)
  const proxy = await CommandProxy.start(t, redis)
  const settings = { ...ALONE, ...IDENTITY, SESSION_SECRETS: SECRETS }
  const cutOff = await testServer(t, { ...settings, REDIS_URL: proxy.url })
  const other = await testServer(t, { ...settings, REDIS_URL: redis.url })
  const { json } = await pause(other, { message: 'before' })
  await until(async () => (await shown(cutOff)).version === json['version'], 'it knows of the pause')
  return { proxy, cutOff, other }
}

/** Checks, once all are connected, that these obey a pause whose message is {@link MESSAGE}. */
async function haveKept(
  t: Test,
  servers: readonly TestServer[],
  { status, json }: Awaited<ReturnType<typeof pause>>,
): Promise<void> {
  t.equal(status, 200)
  for (const server of servers) {
    await until(async () => (await shown(server)).instances?.length === 2, 'it is back')
    t.match(await shown(server), { orders: { message: MESSAGE }, version: json['version'] })
  }
}

await sideBySide({
  'a lift at an instance that is cut off does not undo a pause that another was told of 0.8 seconds later': async (
    t,
  ) => {
    const { proxy, cutOff, other } = await twoInstances(t)
    proxy.isDown = true
    // Whoever gets a 503 repeats the command.
    for (const _ of [1, 2]) t.equal((await control(cutOff, 'DELETE', '/orders')).status, 503)
    await delay(800)
    const paused = await pause(other, { message: MESSAGE })
    proxy.isDown = false
    await haveKept(t, [cutOff, other], paused)
  },
  'a lift that waits for a silent Redis does not undo a pause that another was told of meanwhile': async (t) => {
    const { proxy, cutOff, other } = await twoInstances(t)
    proxy.lateMs = SILENT_MS
    const lift = control(cutOff, 'DELETE', '/orders')
    await delay(500)
    const paused = await pause(other, { message: MESSAGE })
    t.equal((await lift).status, 503)
    proxy.lateMs = 0
    await haveKept(t, [cutOff, other], paused)
  },
  'a lift that waits for a slow Redis does not undo a pause that another was told of meanwhile, and says so': async (
    t,
  ) => {
    const { proxy, cutOff, other } = await twoInstances(t)
    proxy.lateMs = SLOW_MS
    const lift = control(cutOff, 'DELETE', '/orders')
    await delay(100)
    const paused = await pause(other, { message: MESSAGE })
    t.match(await lift, { status: 409, json: { error: /set anew/ } })
    proxy.lateMs = 0
    await haveKept(t, [cutOff, other], paused)
    t.equal((await control(cutOff, 'DELETE', '/orders')).status, 200, 'it is repeated')
  },
  'a lift at an instance that is cut off counts, since it knew of the pause': async (t) => {
    const { proxy, cutOff, other } = await twoInstances(t)
    proxy.isDown = true
    t.equal((await control(cutOff, 'DELETE', '/orders')).status, 503)
    proxy.isDown = false
    await until(async () => (await shown(other)).orders === null, 'the other one learns of it')
  },
})
