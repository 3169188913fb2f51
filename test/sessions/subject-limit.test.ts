import { test, type Test } from 'tap'
import { subjectKey } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import type { SessionIndex } from '../../src/store/session-index.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { subjectInstance, type SubjectInstance } from '../support/sessions/subject-instance.ts'
import { SECRETS, testRedis } from '../support/server/test-server.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'
import { within } from '../support/time/until.ts'

const [OLD, NEW] = [SECRETS, 'the-next-secret-of-thirty-two-bytes-or-more']
const HOUR_MS = 3_600_000

type Add = SessionIndex['add']

/** Two instances in the second roll of new secrets, which add to different keys. `gate` stands before what the first one adds. */
async function rolled(maxSessions: number, gate: (add: () => ReturnType<Add>) => ReturnType<Add> = (add) => add()) {
  const store = new MemoryStore()
  const index = await store.openIndex()
  const add = index.add.bind(index)
  index.add = (key, ...entry) => (key === subjectKey('CR1', OLD) ? gate(() => add(key, ...entry)) : add(key, ...entry))
  const before = await subjectInstance(store, { secrets: [OLD, NEW], maxSessions })
  const after = await subjectInstance(store, { secrets: [NEW, OLD], maxSessions })
  const isLive = async (key = '') => (await store.read(key)) !== undefined
  return { before, after, isLive }
}

/** Runs synchronous code with a time of day that is an hour behind. */
function hourBehind(t: Test) {
  const pass = timeAhead(t)
  return <Result>(run: () => Result): Result => {
    pass(-HOUR_MS)
    try {
      return run()
    } finally {
      pass(HOUR_MS)
    }
  }
}

await test('while secrets are rolled, a login on any instance ends the oldest session beyond the limit', async (t) => {
  const { before, after, isLive } = await rolled(2)
  const keys: (string | undefined)[] = []
  for (const instance of [before, before, after, after, before, after, before, before]) {
    keys.push(await instance.logIn('CR1'))
    const live = await Promise.all(keys.map(isLive))
    t.same(
      live,
      keys.map((_key, at) => at >= keys.length - 2),
    )
  }
})

await test('while secrets are rolled, the oldest ends even if the clock of a server of Redis is behind', async (t) => {
  const { before, after, isLive } = await rolled(1, hourBehind(t))
  const [first, second, third] = [await after.logIn('CR1'), await before.logIn('CR1'), await after.logIn('CR1')]
  t.same(await Promise.all([first, second, third].map(isLive)), [false, false, true])
  const last = await before.logIn('CR1')
  t.same(await Promise.all([third, last].map(isLive)), [false, true])
})

await test('while secrets are rolled, one of two logins lives that both enter the index before either looks', async (t) => {
  const other = Promise.withResolvers<void>()
  const entered = Promise.withResolvers<void>()
  const { before, after, isLive } = await rolled(1, async (add) => {
    await other.promise
    const count = await add()
    entered.resolve()
    return count
  })
  const steps = [
    async () => undefined,
    async () => {
      other.resolve()
      await within(entered.promise, 'the other login has come as far')
    },
  ]
  const keys = await Promise.all([before.logIn('CR1'), after.logIn('CR1', async () => steps.shift()?.())])
  t.equal((await Promise.all(keys.map(isLive))).filter(Boolean).length, 1)
})

await test('while secrets are rolled, one of two logins lives of which only the one that seems older sees the other', async (t) => {
  const done = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  const behind = hourBehind(t)
  const { before, after, isLive } = await rolled(1, async (add) => {
    asked.resolve()
    await done.promise
    return behind(add)
  })
  const slow = before.logIn('CR1')
  await within(asked.promise, 'the store is asked')
  const quick = await after.logIn('CR1')
  done.resolve()
  t.equal((await Promise.all([quick, await slow].map(isLive))).filter(Boolean).length, 1)
})

await test('while secrets are rolled, one of two logins lives that enter the index in the same millisecond', async (t) => {
  const { before, after, isLive } = await rolled(1)
  const now = Date.now()
  t.intercept(Date, 'now', { value: () => now })
  const keys = await Promise.all([before.logIn('CR1'), after.logIn('CR1')])
  t.equal((await Promise.all(keys.map(isLive))).filter(Boolean).length, 1)
})

await test('while secrets are rolled, as many sessions as the limit allows are left of logins at the same moment', async (t) => {
  const redis = await testRedis(t)
  const instances = await Promise.all(
    [
      [OLD, NEW],
      [NEW, OLD],
      [NEW, OLD],
      [OLD, NEW],
    ].map(async (secrets): Promise<SubjectInstance> => {
      return subjectInstance(await connectedStore(t, redis.url), { secrets, maxSessions: 3 })
    }),
  )
  await Promise.all(Array.from({ length: 40 }, async (_each, at) => instances[at % instances.length]?.logIn('CR1')))
  t.equal((await instances[0]?.subjects.list('CR1'))?.length, 3)
})

await test('a login that has yet to create its session counts, and a login that makes room does not take its place', async (t) => {
  const store = new MemoryStore()
  const instance = await subjectInstance(store, { maxSessions: 2 })
  const first = await instance.logIn('CR1')
  let quick: string | undefined
  // The second pause is between the entry in the index and the session.
  const steps: (() => Promise<unknown>)[] = [async () => undefined, async () => (quick = await instance.logIn('CR1'))]
  const slow = await instance.logIn('CR1', async () => steps.shift()?.())
  const isLive = async (key = '') => (await store.read(key)) !== undefined
  t.same(await Promise.all([first, slow, quick].map(isLive)), [false, true, true])
})
