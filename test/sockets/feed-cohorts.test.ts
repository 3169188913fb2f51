import * as fc from 'fast-check'
import { test, type Test } from 'tap'
import { Group } from '../../src/sockets/feed/audience.ts'
import { Cohorts } from '../../src/sockets/feed/cohorts.ts'
import { FrameSequence } from '../../src/sockets/feed/frame-sequence.ts'
import { frameOf } from '../../src/sockets/feed/frame-of.ts'
import type { MemberHost } from '../../src/sockets/feed/member.ts'
import { WriteBatch } from '../../src/sockets/feed/write-batch.ts'
import { memberHost, startMember, type MemberWorld } from '../support/feed/started-member.ts'
import { until } from '../support/until.ts'

const MEMBERS = 3
const GROUPS = 3

/** What happens to a feed, with indexes of members and groups. */
type Event =
  | { readonly is: 'hold' | 'flush' }
  | { readonly is: 'message'; readonly group: number }
  | { readonly is: 'answer' | 'catch up'; readonly member: number }
  | { readonly is: 'join' | 'leave'; readonly member: number; readonly group: number }

const group = fc.nat(GROUPS - 1)
const member = fc.nat(MEMBERS - 1)
const event: fc.Arbitrary<Event> = fc.oneof(
  fc.record({ is: fc.constantFrom('hold', 'flush') }),
  { weight: 4, arbitrary: fc.record({ is: fc.constant('message'), group }) },
  { weight: 2, arbitrary: fc.record({ is: fc.constantFrom('answer', 'catch up'), member }) },
  { weight: 4, arbitrary: fc.record({ is: fc.constantFrom('join', 'leave'), member, group }) },
)

/** Members of one feed and their groups, and what each member has to receive. */
class Feed {
  readonly host: MemberHost
  readonly worlds: readonly MemberWorld[]
  readonly received: string[][] = Array.from({ length: MEMBERS }, () => [])
  readonly expected: string[][] = Array.from({ length: MEMBERS }, () => [])
  readonly groups: readonly Group[]
  readonly #cohorts: Cohorts
  readonly #joined: readonly Set<number>[] = Array.from({ length: MEMBERS }, () => new Set())
  #count = 0

  constructor(host: MemberHost, worlds: readonly MemberWorld[]) {
    this.host = host
    this.worlds = worlds
    this.#cohorts = new Cohorts(host)
    this.groups = Array.from({ length: GROUPS }, (_, at) => new Group(`${at}`, Buffer.alloc(0), undefined))
    for (const [at, { browser }] of worlds.entries()) {
      browser.on('message', (data: Buffer) => this.received[at]?.push(data.toString().trimEnd()))
    }
  }

  take(event: Event): void {
    switch (event.is) {
      case 'hold':
        return this.host.batch.hold()
      case 'flush':
        return this.host.batch.flush()
      case 'message':
        return this.message(event.group)
      case 'answer':
      case 'catch up':
        return this.#sendTo(event.member, event.is)
      case 'join':
      case 'leave':
        return this.#move(event.member, event.group, event.is)
    }
  }

  /** Sends a message of a group. @param bytes its least size */
  message(at: number, bytes = 0): void {
    const text = `message ${++this.#count} of ${at}`
    this.#cohorts.place()
    const frame = frameOf(Buffer.from(text.padEnd(bytes)))
    for (const cohort of this.groups[at]?.cohorts ?? []) cohort.deliver(frame, `${at}`)
    for (const [member, joined] of this.#joined.entries()) if (joined.has(at)) this.expected[member]?.push(text)
  }

  #sendTo(at: number, is: 'answer' | 'catch up'): void {
    const text = `${is} ${++this.#count}`
    const outbox = this.worlds[at]?.member.outbox
    if (is === 'answer') outbox?.answer(frameOf(Buffer.from(text)))
    else outbox?.deliver(frameOf(Buffer.from(text)), 'a stream')
    this.expected[at]?.push(text)
  }

  #move(at: number, groupAt: number, is: 'join' | 'leave'): void {
    const [world, group, joined] = [this.worlds[at], this.groups[groupAt], this.#joined[at]]
    if (world === undefined || group === undefined || joined?.has(groupAt) !== (is === 'leave')) return
    this.#cohorts[is](world.member.outbox, group)
    if (is === 'join') joined.add(groupAt)
    else joined.delete(groupAt)
  }
}

async function startFeed(t: Test, host = memberHost()): Promise<Feed> {
  return new Feed(host, await Promise.all(Array.from({ length: MEMBERS }, () => startMember(t, host))))
}

await test('each browser gets the messages of its groups and its own frames, in order and once', async (t) => {
  const feed = await startFeed(t)
  const order = fc.asyncProperty(fc.array(event, { minLength: 20, maxLength: 60 }), async (events) => {
    for (const one of events) feed.take(one)
    feed.host.batch.flush()
    for (const [at, { member }] of feed.worlds.entries()) {
      member.answer(frameOf(Buffer.from('the end')))
      feed.expected[at]?.push('the end')
    }
    await until(() => feed.received.every((texts) => texts.at(-1) === 'the end'), 'everything has arrived')
    t.same(feed.received, feed.expected)
    const texts = feed.expected.flat()
    t.same(feed.host.traffic, { messages: texts.length, bytes: texts.join('').length }, 'each message is counted')
    for (const texts of [...feed.received, ...feed.expected]) texts.length = 0
    Object.assign(feed.host.traffic, { messages: 0, bytes: 0 })
  })
  await fc.assert(order, { numRuns: 200 })
})

await test('a browser that joins others in the middle of a batch gets nothing that they got before', async (t) => {
  const feed = await startFeed(t)
  const events: Event[] = [
    { is: 'join', member: 0, group: 0 },
    { is: 'join', member: 0, group: 1 },
    { is: 'join', member: 1, group: 0 },
    { is: 'message', group: 0 },
    { is: 'hold' },
    { is: 'message', group: 0 },
    { is: 'join', member: 1, group: 1 },
    { is: 'message', group: 1 },
    { is: 'flush' },
  ]
  for (const one of events) feed.take(one)
  for (const at of [0, 1]) {
    const texts = ['message 1 of 0', 'message 2 of 0', 'message 3 of 1']
    await until(() => feed.received[at]?.at(-1) === texts.at(-1))
    t.same(feed.received[at], texts)
  }
})

await test('messages that are read together leave in one write, also when a browser has just come', async (t) => {
  const feed = await startFeed(t)
  for (const group of [0, 1]) feed.take({ is: 'join', member: 0, group })
  const { wire } = feed.worlds[0]?.member.outbox ?? {}
  const writes = wire && t.capture(wire, 'write', wire.write.bind(wire))
  feed.take({ is: 'hold' })
  for (const at of [0, 1, 0]) feed.message(at)
  feed.take({ is: 'flush' })
  t.equal(writes?.().length, 1)
})

await test('a slow browser gets the newest message of each stream last, and the others get all', async (t) => {
  const feed = await startFeed(t)
  for (const at of [0, 1]) {
    for (const each of [0, 1]) feed.take({ is: 'join', member: at, group: each })
  }
  const { browser } = feed.worlds[0] ?? {}
  browser?.pause()
  const isServed = (at: number): boolean => feed.received[at]?.at(-1) === feed.expected[at]?.at(-1)
  while (feed.host.conflated.messages <= 3) {
    for (const each of [0, 1]) feed.message(each, 30_000)
    await until(() => isServed(1), 'the one that reads has them')
  }
  browser?.resume()
  await until(() => isServed(0), 'the newest message has arrived')
  feed.message(0)
  await until(() => isServed(0) && isServed(1), 'so do later ones')
  const [slow = [], fast = []] = feed.received
  t.same(fast, feed.expected[1])
  t.ok(slow.length < fast.length, `${fast.length - slow.length} messages were left out`)
  t.same(
    slow,
    fast.filter((text) => slow.includes(text)),
    'in order and once',
  )
  t.ok(feed.expected[0]?.slice(-3).every((text) => slow.includes(text)))
})

await test('a message waits behind an older one of its stream, although the browser could take it', async (t) => {
  const limits = { ...memberHost().limits }
  const feed = await startFeed(t, { ...memberHost(), limits })
  feed.take({ is: 'join', member: 0, group: 0 })
  const room = limits.conflateBytes
  limits.conflateBytes = -1
  feed.message(0)
  limits.conflateBytes = room
  feed.message(0)
  feed.worlds[0]?.member.outbox.relieve()
  feed.message(0)
  await until(() => feed.received[0]?.at(-1) === 'message 3 of 0')
  t.same(feed.received[0], ['message 2 of 0', 'message 3 of 0'])
})

await test('a browser whose outbox is closed gets nothing that waits in its cohort', async (t) => {
  const feed = await startFeed(t)
  for (const at of [0, 1]) feed.take({ is: 'join', member: at, group: 0 })
  feed.message(0)
  feed.take({ is: 'hold' })
  feed.message(0)
  feed.worlds[0]?.member.outbox.close()
  feed.take({ is: 'flush' })
  feed.worlds[0]?.socket.send('the end')
  await until(() => feed.received[0]?.at(-1) === 'the end')
  t.same(feed.received[0], ['message 1 of 0', 'the end'])
  await until(() => feed.received[1]?.length === 2, 'the other one has it')
})

await test('browsers of the same groups are one cohort, and leave nothing behind when they leave all', async (t) => {
  const feed = await startFeed(t)
  const [first, second] = feed.worlds.map(({ member }) => member.outbox)
  const each = (is: 'join' | 'leave'): void => {
    for (const group of [0, 1]) feed.take({ is, member: 0, group })
    for (const group of [1, 0]) feed.take({ is, member: 1, group })
  }
  each('join')
  feed.message(0)
  t.equal(first?.cohort, second?.cohort)
  each('leave')
  feed.message(0)
  t.same([first?.cohort, feed.groups[0]?.cohorts.size], [undefined, 0])
})

await test('a batch forgets the browsers that have got what waited for them', (t) => {
  const batch = new WriteBatch()
  let flushed = 0
  const waiting = { flush: () => void flushed++ }
  for (let count = 1; count <= 3; count++) {
    batch.hold()
    batch.begin(waiting, Buffer.alloc(1))
    batch.beginAll(waiting, Buffer.alloc(2), 'a stream')
    batch.flush()
    t.equal(flushed, 2 * count)
  }
  t.end()
})

await test('frames that leave together are one sequence for all who get the same', (t) => {
  const [one, two, three] = [1, 2, 3].map((size) => frameOf(Buffer.alloc(size)))
  if (one === undefined || two === undefined || three === undefined) throw new Error('three frames')
  const begun = new FrameSequence(one)
  const same = begun.with(two)
  t.equal(begun.with(two), same)
  t.equal(same.joined(), begun.with(two).joined(), 'one buffer')
  t.ok(same.joined().equals(Buffer.concat([one, two])))
  t.ok(
    begun
      .with(three)
      .joined()
      .equals(Buffer.concat([one, three])),
  )
  t.end()
})
