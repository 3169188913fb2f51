import { test } from 'tap'
import { idempotencyKey } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { sendTo, TRANSFER } from '../support/user.ts'
import { codeOf, keyedWorld } from '../support/idempotency/keyed-world.ts'
import { rawUpstream } from '../support/upstream/raw-upstream.ts'
import { askRedis } from '../support/redis/topologies.ts'
import { instanceOn, newSession, sessionInstance } from '../support/sessions/session-instance.ts'
import { ALONE } from '../support/server/settings.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'
import { until } from '../support/time/until.ts'
import { SECRETS, testRedis, testServer } from '../support/server/test-server.ts'

await test('While the store is away, a call with an Idempotency-Key', async (t) => {
  const { upstream, order, send, redis } = await keyedWorld(t)

  await t.test(
    'whose record was written without a reply is not sent, and its key is free once the store is back',
    async (t) => {
      upstream.reset()
      // From now on the instance knows the session without asking the store.
      t.equal((await order({ key: 'before' })).status, 200)
      upstream.reset()
      redis?.process.kill('SIGSTOP')
      const response = await order({ key: 'frozen' })
      t.equal(codeOf(response), 'session_store_unavailable')
      t.equal(upstream.requests.length, 0)
      redis?.process.kill('SIGCONT')
      const codes = new Set<unknown>()
      await until(async () => {
        const { status, json } = await order({ key: 'frozen', body: '{"amount":1}' })
        codes.add(json['code'])
        return status === 200
      }, 'the key is free')
      t.notOk(codes.has('outcome_unknown'))
      t.equal(upstream.requests.length, 1)
    },
  )

  await t.test('sends nothing while the store is down, and never waits for it in vain', async (t) => {
    upstream.reset()
    await redis?.close()
    const response = await order({ key: 'no store' })
    t.equal(response.status, 503)
    t.equal(codeOf(response), 'session_store_unavailable')
    t.equal(response.headers['retry-after'], '1')
    t.equal(response.json['outcome'], undefined)
    t.equal(upstream.requests.length, 0)
    t.equal((await send('GET', '/api/v1/health', { headers: { 'x-csrf': '1' } })).status, 200)
  })
})

await test('a call whose process was stopped for longer than its lease is not sent, and its key is free', async (t) => {
  const store = new MemoryStore()
  const sleep = timeAhead(t)
  const count = store.count.bind(store)
  store.count = async (...args) => {
    store.count = count
    sleep(16_000)
    return count(...args)
  }
  const upstream = await rawUpstream(t)
  const sessions = instanceOn(store)
  const cookie = sessions.cookie(await newSession(sessions))
  const settings = { ...ALONE, API_URL: upstream.url, SESSION_SECRETS: SECRETS }
  const { port } = await testServer(t, settings, store)
  const headers = { cookie, 'x-csrf': '1', 'idempotency-key': 'late' }
  const late = await sendTo(port, 'POST', TRANSFER, { headers, body: '{}' })
  t.equal(codeOf(late), 'session_store_unavailable')
  t.equal(upstream.requests.length, 0)
  t.equal((await sendTo(port, 'POST', TRANSFER, { headers, body: '{}' })).status, 200)
})

await test('A call with an Idempotency-Key whose record no replica confirms', async (t) => {
  const master = await testRedis(t, ['--repl-diskless-sync-delay', '0'])
  const replica = await testRedis(t, ['--replicaof', '127.0.0.1', String(master.port)])
  const upstream = await rawUpstream(t)
  const sessions = await sessionInstance(t, master.url)
  // A new replica confirms nothing for up to a second.
  await until(async () => (await sessions.store.isReplicated('any')) === true)
  const id = await newSession(sessions)
  const cookie = sessions.cookie(id)
  const settings = { ...ALONE, API_URL: upstream.url, SESSION_SECRETS: SECRETS, REDIS_URL: master.url }
  const { port } = await testServer(t, { ...settings, IDEMPOTENCY_REPLICAS: '1' })
  const order = (key: string) =>
    sendTo(port, 'POST', TRANSFER, { headers: { cookie, 'x-csrf': '1', 'idempotency-key': key }, body: '{}' })
  const holds = (key: string) => askRedis(master, ['EXISTS', idempotencyKey(id, key)])

  await t.test('is not sent: 503 session_store_unavailable, while calls without a key are', async (t) => {
    t.equal((await order('before')).status, 200)
    upstream.reset()
    replica.process.kill('SIGSTOP')
    t.teardown(() => replica.process.kill('SIGCONT'))
    const [first, second] = [await order('first'), await order('second')]
    t.equal(first.status, 503)
    t.equal(codeOf(first), 'session_store_unavailable')
    t.equal(first.headers['retry-after'], '1')
    t.equal(codeOf(second), 'session_store_unavailable')
    t.equal(upstream.requests.length, 0)
    t.equal((await sendTo(port, 'POST', TRANSFER, { headers: { cookie, 'x-csrf': '1' }, body: '{}' })).status, 200)
    await until(async () => (await holds('first')) === 0, 'the record is removed')
  })

  await t.test('can be repeated with its key once the replica is back', async (t) => {
    upstream.reset()
    await until(async () => (await order('first')).status === 200, 'the key is free')
    t.equal(upstream.requests.length, 1)
    t.equal((await order('first')).headers['idempotency-replayed'], 'true')
    t.equal(await askRedis(replica, ['EXISTS', idempotencyKey(id, 'first')]), 1)
  })
})
