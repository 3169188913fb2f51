import { test, type Test } from 'tap'
import { sessionKey, subjectKey } from '../../src/store/keys.ts'
import { newSession, sessionInstance } from '../support/sessions/session-instance.ts'
import { askRedis } from '../support/redis/topologies.ts'
import { REQUESTER, subjectInstance } from '../support/sessions/subject-instance.ts'
import { SECRETS, testRedis } from '../support/server/test-server.ts'
import { until } from '../support/time/until.ts'

/** An instance on a Redis whose replica confirms writes until it hangs. */
async function withReplica(t: Test) {
  const master = await testRedis(t, ['--repl-diskless-sync-delay', '0'])
  const replica = await testRedis(t, ['--replicaof', '127.0.0.1', String(master.port)])
  const instance = await sessionInstance(t, master.url)
  // A new replica confirms nothing for up to a second.
  await until(async () => (await instance.store.isReplicated('any')) === true)
  const hang = (): void => {
    replica.process.kill('SIGSTOP')
    t.teardown(() => replica.process.kill('SIGCONT'))
  }
  return { instance, hang, master, replica }
}

await test('a logout that no replica confirms is counted, and delays no other request', async (t) => {
  const { instance, hang } = await withReplica(t)
  const { sessions, store } = instance
  const unconfirmed: string[] = []
  sessions.endings.onUnreplicated((key) => unconfirmed.push(key))
  const [first = '', ...others] = await Promise.all(
    Array.from({ length: 50 }, () => newSession({ sessions } as never)),
  ).then((ids) => ids.map(sessionKey))
  t.equal(await sessions.end(first, 'logout'), true)
  t.same(unconfirmed, [], 'the replica confirms the logouts')

  hang()
  const order: string[] = []
  const logouts = others.map(async (key) => {
    t.equal(await sessions.end(key, 'logout'), true)
    order.push('logout')
  })
  await Promise.all(others.map((key) => store.read(key)))
  order.push('read')
  await Promise.all(logouts)
  t.equal(order[0], 'read', 'reads go on while the logouts wait')
  t.same(unconfirmed.sort(), others.sort())
})

await test('a logout counts as unconfirmed once the only replica is gone, and not because Redis is full', async (t) => {
  const { instance, master, replica } = await withReplica(t)
  const { sessions } = instance
  const unconfirmed: string[] = []
  sessions.endings.onUnreplicated((key) => unconfirmed.push(key))
  const [first = '', second = ''] = [await newSession(instance), await newSession(instance)].map(sessionKey)
  await askRedis(master, ['CONFIG', 'SET', 'maxmemory', '1'])
  t.equal(await sessions.end(first, 'logout'), true)
  t.same(unconfirmed, [], 'the replica has it')
  await askRedis(replica, ['REPLICAOF', '127.0.0.1', '1'])
  await until(
    async () => JSON.stringify(await askRedis(master, ['ROLE'])).endsWith(',[]]'),
    'the master names no replica',
  )
  t.equal(await sessions.end(second, 'logout'), true)
  t.same(unconfirmed, [second])
  t.equal(await askRedis(replica, ['EXISTS', second]), 1, 'it would live again after a failover')
})

await test('a second logout of a session waits for a replica, as the first may not have; a made-up id waits for none', async (t) => {
  const { instance, hang } = await withReplica(t)
  const id = await newSession(instance)
  const { sessions } = instance
  t.ok(await sessions.endById(id, 'logout', true))
  const unconfirmed: string[] = []
  sessions.endings.onUnreplicated((key) => unconfirmed.push(key))
  hang()
  t.equal(await sessions.endById('made-up', 'logout', false), undefined)
  t.same(unconfirmed, [])
  t.equal(await sessions.endById(id, 'logout', true), undefined, 'the session is gone')
  t.same(unconfirmed, [sessionKey(id)])
})

await test('an end of all sessions of a subject that no replica confirms is counted, even where none is listed', async (t) => {
  const { instance, hang } = await withReplica(t)
  const { subjects, sessions } = await subjectInstance(instance.store)
  const unconfirmed: string[] = []
  sessions.endings.onUnreplicated((key) => unconfirmed.push(key))
  hang()
  t.equal(await subjects.endAll('CR1', { reason: 'logout', requester: REQUESTER }), 0)
  t.same(unconfirmed, [subjectKey('CR1', SECRETS)])
})

await test('without replicas a logout does not wait for any', async (t) => {
  const redis = await testRedis(t)
  const instance = await sessionInstance(t, redis.url)
  const id = await newSession(instance)
  await instance.sessions.end(sessionKey(id), 'logout')
  t.notMatch(String(await askRedis(redis, ['INFO', 'commandstats'])), /cmdstat_wait/)
})
