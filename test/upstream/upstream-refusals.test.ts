import { test } from 'tap'
import { UpstreamRefusals } from '../../src/upstream/budget/upstream-refusals.ts'

const EPOCH = 1_700_000_000_000

/** The refusals of a process that is alone, whose clock a test moves. */
function refusalsOf() {
  const world = { now: 1000, named: [] as string[], timers: new Map<object, { ms: number; call: () => void }>() }
  const refusals = new UpstreamRefusals(
    {
      now: () => world.now,
      timeOfDay: () => EPOCH + world.now,
      after: (ms, call) => {
        const timer = {}
        world.timers.set(timer, { ms, call })
        return () => void world.timers.delete(timer)
      },
    },
    (user) => {
      world.named.push(user)
      return `name of ${user}`
    },
  )
  return {
    refusals,
    world,
    delays: () => [...world.timers.values()].map(({ ms }) => ms),
    /** Lets time pass, and runs the timers that were set. */
    pass: (ms: number): void => {
      world.now += ms
      for (const [timer, { call }] of [...world.timers]) {
        world.timers.delete(timer)
        call()
      }
    },
    refuse: (user: string, retryAfter?: string, probe?: string) =>
      refusals.refused('orders', callerOf(user), retryAfter, probe),
    /** All instances are to know this of the class of orders. */
    know: async (changes: object): Promise<unknown> =>
      refusals.suspicions.change((all) => ({ ...all, orders: { ...all.orders, ...changes } })),
    leftMs: (user: string): number => refusals.hold('orders', callerOf(user))?.leftMs ?? 0,
  }
}

const callerOf = (user: string) => ({ user, source: user })

/** Users whom all instances hold back for a minute. */
const heldUsers = (names: readonly string[]) => ({
  users: Object.fromEntries(names.map((name) => [name, [EPOCH + 1000, EPOCH + 61_000]])),
})
const MANY = Array.from({ length: 10_000 }, (_value, each) => `user ${each}`)

await test('a caller has one name where nobody but he is the source, and else two', (t) => {
  const { refusals, world } = refusalsOf()
  t.same(refusals.named(callerOf('a')), { user: 'name of a', source: 'name of a' })
  t.same(world.named, ['a'], 'which was computed once')
  t.same(refusals.named({ user: 'a', source: 'b' }), { user: 'name of a', source: 'name of b' })
  t.end()
})

await test('a user who is refused is held back for as long as upstream asks, from one second to a minute', (t) => {
  const { refusals, refuse, leftMs } = refusalsOf()
  for (const [retryAfter, ms] of [
    ['7', 7000],
    ['0', 1000],
    ['61', 60_000],
    [undefined, 10_000],
    ['soon', 10_000],
  ] as const) {
    refuse(`told ${retryAfter}`, retryAfter)
    t.equal(leftMs(`told ${retryAfter}`), ms)
  }
  refuse('told 7', '1')
  t.equal(leftMs('told 7'), 7000, 'the longest counts')
  t.same(refusals.hold('orders', callerOf('told 7')), { limited: 'user', leftMs: 7000 })
  t.equal(refusals.hold('reads', callerOf('told 7')), undefined)
  t.equal(refusals.hold('orders', callerOf('another')), undefined)
  t.equal(refusals.hold('orders', undefined), undefined)
  t.same(refusals.usersHeldBack, { orders: 5, otps: 0, reads: 0 })
  t.end()
})

await test('a user who is refused is held back, even when so many are that the instances do not share him', (t) => {
  const { refuse, leftMs } = refusalsOf()
  for (const user of MANY.slice(0, 510)) refuse(user, '7')
  for (const user of MANY.slice(0, 510)) t.equal(leftMs(user), 7000)
  t.end()
})

await test('while nobody is held back and no class suspected all is calm, and nothing is looked at', async (t) => {
  const { refusals, refuse, delays, pass, know } = refusalsOf()
  t.equal(refusals.isCalm, true)
  t.same(delays(), [])
  refuse('a', '2')
  refuse('b', '1')
  t.equal(refusals.isCalm, false)
  t.same(delays(), [1000], 'one timer, however often it is looked')
  pass(1000)
  t.equal(refusals.isCalm, false)
  t.same(delays(), [1000])
  t.same(refusals.usersHeldBack, { orders: 1, otps: 0, reads: 0 }, 'the other is free at this very moment')
  pass(1000)
  t.equal(refusals.isCalm, true)
  t.same(delays(), [])
  await know({ users: {}, suspectedUntil: EPOCH + 5000 })
  t.equal(refusals.isCalm, false, 'a class that is suspected is looked at, though nobody is held back')
  t.same(delays(), [1000])
  pass(2000)
  t.equal(refusals.isCalm, true)
  t.same(delays(), [])
  pass(1000)
  t.same(delays(), [])
})

await test('once closed nothing is looked at any more, and nothing is heard of other instances', async (t) => {
  const { refusals, refuse, delays } = refusalsOf()
  let isClosed = false
  refusals.suspicions.share({
    read: async () => ({ version: '1', text: '', now: EPOCH }),
    write: async () => '2',
    close: () => void (isClosed = true),
  })
  refuse('a', '7')
  t.same(delays(), [1000])
  refusals.close()
  t.same(delays(), [])
  t.equal(isClosed, true)
  const calm = refusalsOf()
  calm.refusals.close()
  t.same(calm.delays(), [])
})

await test('a class is held back up to a moment, and then no more', async (t) => {
  const { refusals, world, know } = refusalsOf()
  await know({ suspectedUntil: EPOCH + 60_000, heldUntil: EPOCH + 3000 })
  for (const caller of [undefined, callerOf('a')]) {
    t.same(refusals.hold('orders', caller), { limited: 'all', leftMs: 2000 })
    t.equal(refusals.hold('reads', caller), undefined)
  }
  t.same([refusals.isHeldBack('orders'), refusals.isHeldBack('reads')], [true, false])
  world.now = 3000
  t.equal(refusals.hold('orders', undefined), undefined)
  t.equal(refusals.isHeldBack('orders'), false)
})

await test('the call of another user is the probe of all instances, if there is none, and its answer decides', async (t) => {
  const { refusals, refuse } = refusalsOf()
  t.equal(refusals.mayProbe('orders', callerOf('d')), false)
  for (const user of ['a', 'b', 'c']) refuse(user, '7')
  t.equal(refusals.mayProbe('orders', callerOf('a')), false)
  t.equal(refusals.mayProbe('reads', callerOf('d')), false)
  t.equal(refusals.mayProbe('orders', callerOf('d')), true)
  const first = refusals.takeProbe('orders', callerOf('d'))
  const second = refusals.takeProbe('orders', callerOf('e'))
  t.not(first.probe, second.probe)
  t.same([await first.taken, await second.taken], [true, false])
  t.equal(refusals.mayProbe('orders', callerOf('e')), false)
  refuse('e', '20', second.probe)
  t.equal(refusals.isHeldBack('orders'), false)
  refuse('d', '20', first.probe)
  t.equal(refusals.isHeldBack('orders'), true)
  t.equal(refusals.hold('orders', undefined)?.leftMs, 20_000)
})

await test('10,000 users are held back at most, and whoever was held back longest ago is forgotten', async (t) => {
  const { refusals, know, leftMs } = refusalsOf()
  await know(heldUsers(MANY))
  t.equal(refusals.usersHeldBack.orders, 10_000)
  t.same([leftMs('user 0'), leftMs('user 9999')], [60_000, 60_000])
  await know(heldUsers(['user 0']))
  await know(heldUsers(['another']))
  t.equal(refusals.usersHeldBack.orders, 10_000)
  t.same(['user 0', 'user 1', 'user 2', 'another'].map(leftMs), [60_000, 0, 60_000, 60_000])
})

await test('whoever is held back again, or no more, takes the place of nobody', async (t) => {
  const { refusals, know, leftMs } = refusalsOf()
  await know(heldUsers(MANY))
  await know(heldUsers(['user 5']))
  t.equal(leftMs('user 0'), 60_000)
  for (const until of [EPOCH + 1000, EPOCH + 500]) await know({ users: { free: [EPOCH, until] } })
  t.equal(leftMs('user 0'), 60_000)
  t.equal(refusals.usersHeldBack.orders, 10_000)
})

await test('a user who is no longer held back is forgotten, and others have his place', async (t) => {
  const { refusals, world, refuse, know, leftMs } = refusalsOf()
  refuse('short', '1')
  await know(heldUsers(MANY.slice(0, 9999)))
  world.now += 1000
  t.equal(refusals.usersHeldBack.orders, 9999)
  await know(heldUsers(['another']))
  t.equal(refusals.usersHeldBack.orders, 10_000)
  t.equal(leftMs('user 0'), 59_000)
})
