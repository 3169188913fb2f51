import { test } from 'tap'
import type { Clock } from '../../src/upstream/budget/clock.ts'
import { BudgetCall } from '../../src/upstream/budget/budget-call.ts'
import { UpstreamRefusals } from '../../src/upstream/budget/upstream-refusals.ts'
import { SharedText } from '../support/budget/shared-text.ts'

/** These calls are never started, so none asks for a token. */
const NO_TOKENS = {
  another: () => undefined,
  refuse: () => ({ is: 'refused', limited: 'all', retryAfterMs: 1000 }) as const,
}

/** Instances whose clocks a test moves, with a store between them. */
class Fleet {
  now = 1000
  /** How far the store's clock is ahead of all others. */
  aheadMs = 1.7e12
  readonly store = new SharedText(() => this.now + this.aheadMs)
  readonly instances: readonly UpstreamRefusals[]

  constructor(count = 2) {
    this.instances = Array.from({ length: count }, () => this.start())
  }

  start(): UpstreamRefusals {
    const clock: Clock = { now: () => this.now, timeOfDay: () => 1.7e12 + this.now, after: () => () => undefined }
    const refusals = new UpstreamRefusals(clock, (user) => user)
    refusals.suspicions.share(this.store.open(() => refusals.suspicions.reread()))
    return refusals
  }

  /** A call of a user. It is not written yet. */
  call(at: number, user: string, source = user): BudgetCall {
    const refusals = this.instances[at]
    if (refusals === undefined) throw new Error('there is no such instance')
    return new BudgetCall(refusals, NO_TOKENS, 'orders', user, () => source)
  }

  /** Sends a call of a user by an instance, as the budget does. @returns upstream's status, or who is limited */
  async send(at: number, user: string, answer: number, source = user): Promise<number | 'user' | 'all'> {
    const call = this.call(at, user, source)
    if (call.hold()?.limited === 'all' && call.mayProbe) await call.takeProbe()
    const hold = call.hold()
    if (hold !== undefined) return hold.limited
    call.written()
    call.answered(answer, '30')
    call.end()
    await settled()
    return answer
  }

  /** Three users are refused, this long after each other. */
  async suspect(apartMs = 0): Promise<void> {
    for (const user of ['a', 'b', 'c']) {
      this.pass(apartMs)
      await this.send(0, user, 429)
    }
  }

  /** Three users are refused, and the probe of a fourth. */
  async hold(): Promise<void> {
    await this.suspect()
    await this.send(0, 'prober', 429)
  }

  heldMs(at: number): number {
    return this.call(at, 'somebody').hold()?.leftMs ?? 0
  }

  pass(ms: number): void {
    this.now += ms
  }
}

/** What has begun at the instances and the store has ended. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 100; turn++) await Promise.resolve()
}

await test('two users who are refused all the time raise no suspicion', async (t) => {
  const fleet = new Fleet()
  for (let count = 0; count < 100; count++) {
    await fleet.send(count % 2, count % 3 === 0 ? 'a' : 'b', 429)
    fleet.pass(1000)
  }
  t.equal(await fleet.send(0, 'c', 429), 429, 'this one does')
  fleet.pass(10_001)
  t.equal(await fleet.send(0, 'd', 429), 429)
  t.equal(fleet.heldMs(0), 0)
})

for (const [apartMs, isSuspected] of [
  [4999, true],
  [5001, false],
] as const) {
  await test(`three users who are refused ${apartMs} ms apart ${isSuspected ? 'raise a suspicion' : 'raise none'}`, async (t) => {
    const fleet = new Fleet()
    for (const user of ['a', 'b', 'c']) {
      await fleet.send(0, user, 429)
      if (user !== 'c') fleet.pass(apartMs)
    }
    await fleet.send(1, 'd', 429)
    t.equal(fleet.heldMs(0) > 0, isSuspected)
    t.equal(fleet.heldMs(1) > 0, isSuspected)
  })
}

await test('calls of a session without a subject, at the address of one who was refused, are no probes', async (t) => {
  const fleet = new Fleet()
  await fleet.suspect()
  for (const fresh of ['fresh', 'fresh too']) t.equal(await fleet.send(1, fresh, 429, 'a'), 429)
  t.equal(fleet.heldMs(0), 0, 'else an attacker would send it with a new session')
  await fleet.send(1, 'd', 429)
  t.ok(fleet.heldMs(0) > 0)
})

await test('a suspicion whose probe is answered otherwise is over, and those who raised it do not count for five minutes', async (t) => {
  for (const [at, status] of [200, 403, 503].entries()) {
    const fleet = new Fleet()
    // At the same moment, or up to six seconds before the third of them.
    await fleet.suspect(at * 1500)
    t.equal(await fleet.send(1, 'd', status), status)
    fleet.pass(30_000)
    await fleet.suspect()
    for (const user of ['e', 'f']) await fleet.send(1, user, 429)
    t.equal(fleet.heldMs(0), 0, `after a ${status}`)
    fleet.pass(300_000)
    await fleet.suspect()
    await fleet.send(1, 'g', 429)
    t.ok(fleet.heldMs(0) > 0, 'after five minutes they count again')
  }
})

await test('while a class is held back, one probe goes out after 1, 2, 4, … seconds, and the hold ends with the first success', async (t) => {
  const fleet = new Fleet(3)
  await fleet.hold()
  t.equal(fleet.heldMs(2), 30_000)
  const sentAt: number[] = []
  for (let tenth = 0; tenth < 400; tenth++) {
    fleet.pass(100)
    // Everybody asks. A user whose probe was refused sends none again.
    const sent = await Promise.all(
      fleet.instances.map((_instance, at) => fleet.send(at, `user${tenth}`, tenth < 350 ? 429 : 200)),
    )
    t.ok(sent.filter((status) => status === 429).length <= 1)
    if (sent.includes(429)) sentAt.push(tenth + 1)
    if (sent.includes(200)) break
    t.ok(fleet.heldMs(0) > 0 && fleet.heldMs(0) <= 60_000)
  }
  t.same(sentAt, [10, 30, 70, 150, 310])
  fleet.pass(32_000)
  t.equal(await fleet.send(2, 'last', 200), 200)
  for (const at of [0, 1, 2]) t.equal(fleet.heldMs(at), 0)
})

await test('two instances that want to send the probe at the same moment send one', async (t) => {
  const fleet = new Fleet()
  await fleet.hold()
  fleet.pass(1000)
  const sent = await Promise.all([fleet.send(0, 'd', 429), fleet.send(1, 'e', 429)])
  t.same(new Set(sent), new Set([429, 'all']))
})

await test('of two calls that are written at the same moment, when a suspicion was raised, the answer to one decides', async (t) => {
  const held: boolean[] = []
  for (const answered of [0, 1]) {
    const fleet = new Fleet()
    await fleet.suspect()
    const calls = [fleet.call(0, 'd'), fleet.call(1, 'e')]
    // Both are sent, since nothing is held back yet, and neither instance knows of the other's.
    for (const call of calls) call.written()
    await settled()
    calls[answered]?.answered(429, '30')
    await settled()
    held.push(fleet.heldMs(0) > 0)
  }
  t.equal(held.filter(Boolean).length, 1)
})

await test('a probe that is not sent, or gets no answer, lets the next call be one', async (t) => {
  const fleet = new Fleet()
  await fleet.hold()
  fleet.pass(1000)
  const call = fleet.call(1, 'd')
  t.ok(await call.takeProbe())
  call.answered(103, undefined)
  await settled()
  t.equal(await fleet.send(0, 'e', 200), 'all', 'there is one already, and an informational response decides nothing')
  call.end()
  await settled()
  t.equal(await fleet.send(0, 'e', 200), 200)
  t.equal(fleet.heldMs(1), 0)
})

await test('an instance that dies with the probe keeps the others waiting for 15 seconds', async (t) => {
  const fleet = new Fleet()
  await fleet.hold()
  fleet.pass(1000)
  t.ok(await fleet.call(1, 'd').takeProbe())
  fleet.pass(14_999)
  t.equal(await fleet.send(0, 'e', 200), 'all')
  fleet.pass(1)
  t.equal(await fleet.send(0, 'e', 200), 200)
})

await test('a hold ends by itself where nobody may send a probe, and then upstream limits each by himself', async (t) => {
  const fleet = new Fleet()
  await fleet.hold()
  for (let second = 0; second < 29; second++) {
    fleet.pass(1000)
    for (const user of ['a', 'b', 'c', 'prober']) t.not(await fleet.send(0, user, 429), 429)
  }
  fleet.pass(1000)
  for (const user of ['a', 'b', 'c', 'prober']) t.equal(await fleet.send(1, user, 429), 429)
  t.equal(fleet.heldMs(0), 0, 'a 429 to one of them holds nobody else back')
  for (const user of ['a', 'b', 'c', 'prober']) t.equal(await fleet.send(1, user, 429), 'user')
  t.equal(await fleet.send(0, 'new', 429), 429)
  t.ok(fleet.heldMs(1) > 0, 'one of a user who was not refused does')
})

await test('a store whose clock jumps holds nobody back for longer than a minute', async (t) => {
  for (const stepMs of [-3_600_000, 3_600_000]) {
    const fleet = new Fleet()
    await fleet.hold()
    fleet.aheadMs += stepMs
    await fleet.send(1, 'x', 429)
    t.ok(fleet.heldMs(0) <= 60_000 && fleet.heldMs(1) <= 60_000)
    const late = fleet.start()
    await settled()
    t.ok((new BudgetCall(late, NO_TOKENS, 'orders', 'a', () => 'a').hold()?.leftMs ?? 0) <= 60_000)
    fleet.pass(61_000)
    for (const user of ['a', 'new']) t.equal(await fleet.send(1, user, 200), 200)
  }
})

await test('while the store is away each instance decides for itself, and it shares again when the store is back', async (t) => {
  const fleet = new Fleet()
  fleet.store.isAway = true
  await fleet.hold()
  t.ok(fleet.heldMs(0) > 0)
  t.equal(fleet.heldMs(1), 0)
  fleet.pass(1000)
  t.equal(await fleet.send(0, 'd', 200), 200, 'a probe of its own')
  t.equal(fleet.heldMs(0), 0)
  fleet.store.isAway = false
  for (const user of ['e', 'f', 'g']) await fleet.send(0, user, 429)
  t.equal(await fleet.send(0, 'a', 429), 'user', 'it still knows whom it holds back')
  t.equal(await fleet.send(1, 'e', 429), 'user')
})

await test('a store that has lost everything shortens no hold of a user', async (t) => {
  const fleet = new Fleet()
  await fleet.send(0, 'a', 429)
  fleet.store.forget()
  await settled()
  for (const at of [0, 1]) t.equal(await fleet.send(at, 'a', 200), 'user')
  // A call that was on its way is refused too.
  fleet.call(0, 'a').answered(429, '1')
  await settled()
  for (const at of [0, 1]) t.match(fleet.call(at, 'a').hold(), { limited: 'user', leftMs: 30_000 })
})

await test('an instance that starts later knows who is held back', async (t) => {
  const fleet = new Fleet()
  await fleet.hold()
  fleet.pass(1000)
  // A call that was on its way and the next probe are refused for a shorter time.
  const next = fleet.call(1, 'another')
  t.ok(await next.takeProbe())
  for (const call of [fleet.call(0, 'a'), next]) call.answered(429, '1')
  await settled()
  const late = fleet.start()
  await settled()
  t.match(new BudgetCall(late, NO_TOKENS, 'orders', 'a', () => 'a').hold(), { limited: 'user', leftMs: 29_000 })
  t.match(new BudgetCall(late, NO_TOKENS, 'orders', 'new', () => 'new').hold(), { limited: 'all', leftMs: 29_000 })
  t.equal(new BudgetCall(late, NO_TOKENS, 'reads', 'a', () => 'a').hold(), undefined)
})

await test('no refusal is lost when many instances write at once, and what is kept is bounded', async (t) => {
  const fleet = new Fleet(8)
  const users = Array.from({ length: 400 }, (_value, each) => `user${each}`)
  await Promise.all(users.map((user, each) => fleet.send(each % 8, user, 429, 'one address')))
  await settled()
  for (const user of users) t.equal(fleet.call(0, user).hold()?.limited, 'user')
  t.ok(fleet.store.writes <= 80, `${fleet.store.writes} writes for 400 refusals`)
  const many = Array.from({ length: 5000 }, (_value, each) => `another${each}`)
  await Promise.all(many.map((user) => fleet.send(0, user, 429)))
  t.ok(fleet.store.text.length < 100_000, `${fleet.store.text.length} characters for one class`)
})
