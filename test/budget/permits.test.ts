import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import { WebSocket } from 'ws'
import { BrowserSocket } from '../support/browser/browser-socket.ts'
import { ScriptedUpstream } from '../support/upstream/scripted-upstream.ts'
import { ready, serverProcess } from '../support/server/server-process.ts'
import { newSession, sessionInstance } from '../support/sessions/session-instance.ts'
import { ALONE } from '../support/server/settings.ts'
import { until, untilSlow } from '../support/time/until.ts'
import { SECRETS, testRedis } from '../support/server/test-server.ts'

const full = { code: 4429, reason: 'too_many_relays' }

await test('the permits of an instance that was killed count for 25 seconds more, those of one that lives for good', async (t) => {
  const upstream = await ScriptedUpstream.start(t)
  const redis = await testRedis(t)
  const settings = {
    ...ALONE,
    API_URL: `http://${upstream.host}`,
    WS_URL: `ws://${upstream.host}`,
    REDIS_URL: redis.url,
    SESSION_SECRETS: SECRETS,
    MAX_RELAYS_PER_SESSION: '2',
    LOG_LEVEL: 'warn',
  }
  const [first, second] = await Promise.all([serverProcess(t, settings), serverProcess(t, settings)])
  for (const server of [first, second]) t.ok(await ready(server))
  const instance = await sessionInstance(t, redis.url)
  const cookie = instance.cookie(await newSession(instance))
  const open = (port: number): BrowserSocket => {
    const headers = { origin: ALONE.PUBLIC_URL, cookie }
    const client = new BrowserSocket(`ws://127.0.0.1:${port}/ws/trading/VRTC100`, headers)
    t.teardown(() => client.socket.terminate())
    return client
  }
  for (let count = 0; count < 2; count++) {
    await open(first.port).opened()
    await upstream.socket()
  }
  t.same(await open(second.port).closed, full)
  await delay(27_000)
  t.same(await open(second.port).closed, full, 'the first instance has said twice that it lives')

  const killedAt = Date.now()
  first.child.kill('SIGKILL')
  await untilSlow(() => upstream.open === 0)
  t.same(await open(second.port).closed, full)
  await untilSlow(async () => {
    const { socket } = open(second.port)
    await until(() => socket.readyState === WebSocket.CLOSED || upstream.open === 1)
    return upstream.open === 1
  })
  const freeMs = Date.now() - killedAt
  t.comment(`free ${(freeMs / 1000).toFixed(1)} s after the kill`)
  // The last statement was up to ten seconds old.
  t.ok(freeMs > 14_000 && freeMs < 30_000)
  t.equal(upstream.otpRequests.length, 3)
})
