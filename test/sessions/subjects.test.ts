import { test } from 'tap'
import { MemoryStore } from '../../src/store/memory-store.ts'
import type { RedisProcess } from '../../sandbox/redis-process.ts'
import { sessionKey } from '../../src/store/keys.ts'
import { ENDED_MS } from '../../src/store/session-index.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { askRedis } from '../support/redis/topologies.ts'
import { sessionRecord } from '../support/sessions/session-instance.ts'
import { REQUESTER, subjectInstance } from '../support/sessions/subject-instance.ts'
import { SECRETS, testRedis } from '../support/server/test-server.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'
import { assertNoneSurvives } from './everywhere-races.ts'

const LOGINS = 300
const [OLD, NEW] = [SECRETS, 'the-next-secret-of-thirty-two-bytes-or-more']
const BY = { reason: 'logout', requester: REQUESTER } as const
const fieldsOf = async (redis: RedisProcess, name: string) => (await askRedis(redis, ['HKEYS', name])) as string[]
const valuesOf = async (redis: RedisProcess, name: string) => (await askRedis(redis, ['HVALS', name])) as string[]

await test(`of ${LOGINS} logins none survives an end of all sessions that came later, in memory`, async (t) => {
  const store = new MemoryStore()
  await assertNoneSurvives(t, async () => store, LOGINS)
})

await test(`of ${LOGINS} logins none survives an end of all sessions that came later, on three instances`, async (t) => {
  const redis = await testRedis(t)
  await assertNoneSurvives(t, () => connectedStore(t, redis.url), LOGINS)
})

await test('the index shows neither subjects nor sessions nor addresses in Redis, and expires', async (t) => {
  const redis = await testRedis(t)
  const instance = await subjectInstance(await connectedStore(t, redis.url))
  const key = (await instance.logIn('the subject')) ?? ''
  const keys = (await askRedis(redis, ['KEYS', '*:subject:*'])) as string[]
  t.equal(keys.length, 1)
  const [name = ''] = keys
  t.match(name, /^bff:1:subject:[\w-]{43}$/)
  const [[id = ''], [value = '']] = [await fieldsOf(redis, name), await valuesOf(redis, name)]
  t.match(id, /^[\w-]{12}$/)
  t.match(value, /^\d{13} \d{13} v1\.[\w-]{8}\.[\w-]+$/)
  t.notOk(`${id}${value}`.includes(key))
  const ttl = Number(await askRedis(redis, ['PTTL', name]))
  t.ok(ttl > 3_500_000 && ttl <= 3_600_000, 'the key lives as long as the session may')
})

await test('an entry that was moved to another subject, or damaged, is not read', async (t) => {
  const redis = await testRedis(t)
  const instance = await subjectInstance(await connectedStore(t, redis.url))
  await instance.logIn('a thief')
  const [from = ''] = (await askRedis(redis, ['KEYS', '*:subject:*'])) as string[]
  const [[id = ''], [value = '']] = [await fieldsOf(redis, from), await valuesOf(redis, from)]
  const victim = await instance.logIn('a victim')
  const names = (await askRedis(redis, ['KEYS', '*:subject:*'])) as string[]
  const to = names.find((name) => name !== from) ?? ''
  await askRedis(redis, ['HSET', to, id, value, 'damaged', '1 99999999999999 v1.x.y'])
  t.equal((await instance.subjects.list('a victim')).length, 1)
  t.equal(await instance.subjects.endAll('a victim', BY), 1)
  t.equal(await instance.sessions.end(victim ?? '', 'logout'), false)
  t.equal((await instance.subjects.list('a thief')).length, 1)
})

await test('two rolls of secrets lose no session of a subject, whichever instance is asked', async (t) => {
  const store = new MemoryStore()
  const instances = async (...secrets: (readonly string[])[]) =>
    Promise.all(secrets.map((each) => subjectInstance(store, { secrets: each })))
  const first = [OLD]
  const appended = [OLD, NEW]
  const moved = [NEW, OLD]
  let rounds = 0
  // Who runs at the same moment, and who must still find the sessions of these later.
  for (const [writing, reading] of [
    [[first], [first, appended, moved]],
    [
      [first, appended],
      [appended, moved],
    ],
    [
      [appended, moved],
      [appended, moved],
    ],
    [[moved], [moved, [NEW]]],
  ] as const) {
    const writers = await instances(...writing)
    for (const reader of await instances(...reading)) {
      const subject = `subject ${++rounds}`
      for (const writer of writers) await writer.logIn(subject)
      const listed = await reader.subjects.list(subject)
      t.equal(listed.length, writers.length)
      t.ok(await reader.subjects.endTagged(subject, listed[0]?.tag ?? '', BY))
      t.equal(await reader.subjects.endAll(subject, BY), writers.length - 1)
      t.same(await reader.subjects.list(subject), [])
    }
  }
})

await test('a login that is under way when its instance’s neighbour with newer secrets ends all is found', async (t) => {
  const store = new MemoryStore()
  const before = await subjectInstance(store, { secrets: [OLD, NEW] })
  const after = await subjectInstance(store, { secrets: [NEW, OLD] })
  for (const [slow, quick] of [
    [before, after],
    [after, before],
  ] as const) {
    const steps: (() => Promise<unknown>)[] = [async () => undefined, () => quick.subjects.endAll('CR1', BY)]
    t.equal(await slow.logIn('CR1', async () => steps.shift()?.()), undefined)
  }
})

await test('a login whose machine was suspended when all sessions were ended does not become one', async (t) => {
  const store = new MemoryStore()
  const instance = await subjectInstance(store)
  const sleep = timeAhead(t)
  t.intercept(performance, 'now', { value: () => 0 })
  const suspend = async (): Promise<void> => {
    sleep(25_000)
    await instance.subjects.endAll('CR1', BY)
    sleep(5000)
  }
  const steps = [suspend, async () => undefined, async () => undefined]
  t.equal(await instance.logIn('CR1', async () => steps.shift()?.()), undefined)
  t.ok(await instance.logIn('CR1'), 'one that begins later does')
})

await test('an operator who ends one session that is just being made finds it, too', async (t) => {
  const instance = await subjectInstance(new MemoryStore())
  const { subjects, sessions } = instance
  const endsAt = Date.now() + 60_000
  const id = 'being made'
  const enlisted = await subjects.enlist({ subject: 'CR1', id, endsAt, client: REQUESTER.client })
  await subjects.endTagged('CR1', sessions.tag(sessionKey(id)), BY)
  t.equal(await subjects.mayLive(enlisted, () => 0), false)
})

await test('a login that creates its session just after an operator has ended that does not become one', async (t) => {
  const store = new MemoryStore()
  const { subjects, sessions } = await subjectInstance(store)
  const endsAt = Date.now() + 60_000
  const id = 'created too late'
  const enlisted = await subjects.enlist({ subject: 'CR1', id, endsAt, client: REQUESTER.client })
  const bury = store.bury.bind(store)
  let mayLive: boolean | undefined
  store.bury = async (...args) => {
    const buried = await bury(...args)
    await sessions.create(id, sessionRecord({ subject: 'CR1', endsAt }))
    mayLive = await subjects.mayLive(enlisted, () => 0)
    return buried
  }
  await subjects.endTagged('CR1', sessions.tag(sessionKey(id)), BY)
  t.equal(mayLive, false)
})

await test('a login that took longer than the end of all sessions is remembered does not become a session', async (t) => {
  const { subjects } = await subjectInstance(new MemoryStore())
  const endsAt = Date.now() + 3_600_000
  const enlisted = await subjects.enlist({ subject: 'CR1', id: 'slow', endsAt, client: REQUESTER.client })
  t.equal(await subjects.mayLive(enlisted, () => ENDED_MS * 0.99), true)
  t.equal(await subjects.mayLive(enlisted, () => ENDED_MS), false)
})

await test('an end of all that was interrupted leaves the remaining sessions to be found again', async (t) => {
  const store = new MemoryStore()
  const instance = await subjectInstance(store)
  const key = (await instance.logIn('CR1')) ?? ''
  const other = (await instance.logIn('CR1')) ?? ''
  const bury = store.bury.bind(store)
  store.bury = async (...args) => {
    if (args[0] === other) throw new Error('the process dies')
    return bury(...args)
  }
  await t.rejects(instance.subjects.endAll('CR1', BY))
  t.equal(await store.read(key), undefined)
  store.bury = bury
  t.equal(await instance.subjects.endAll('CR1', BY), 1)
  t.equal(await store.read(other), undefined)
})

await test('two ends of all at the same moment both succeed, and end each session once', async (t) => {
  const instance = await subjectInstance(new MemoryStore())
  for (let count = 0; count < 5; count++) await instance.logIn('CR1')
  const ended = await Promise.all([instance.subjects.endAll('CR1', BY), instance.subjects.endAll('CR1', BY)])
  t.equal(ended[0] + ended[1], 5)
})

await test('with a limit, as many sessions as it allows are left of logins at the same moment', async (t) => {
  const redis = await testRedis(t)
  const stores = await Promise.all([
    connectedStore(t, redis.url),
    connectedStore(t, redis.url),
    connectedStore(t, redis.url),
  ])
  const instances = await Promise.all(stores.map((store) => subjectInstance(store, { maxSessions: 3 })))
  await Promise.all(Array.from({ length: 40 }, async (_each, at) => instances[at % 3]?.logIn('CR1')))
  t.equal((await instances[0]?.subjects.list('CR1'))?.length, 3)
  const [name = ''] = (await askRedis(redis, ['KEYS', '*:subject:*'])) as string[]
  const size = Number(await askRedis(redis, ['HLEN', name]))
  t.ok(size <= 43, `the index is bounded: ${size} entries`)
})
