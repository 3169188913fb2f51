import * as fc from 'fast-check'
import { test } from 'tap'
import { FrameSequence, WriteBatch } from '../../src/sockets/feed/wire/write-batch.ts'
import { frameOf } from '../../src/sockets/feed/wire/frame-of.ts'
import { memberHost, startMember, waitingOn } from '../support/feed/started-member.ts'
import { until } from '../support/time/until.ts'

const MEMBERS = 3

/** What happens to a feed. A message goes to some of the browsers, an answer to one. */
type Event =
  | { readonly is: 'open' | 'flush' }
  | { readonly is: 'message'; readonly to: readonly number[] }
  | { readonly is: 'answer'; readonly to: number }

const member = fc.nat(MEMBERS - 1)
const event: fc.Arbitrary<Event> = fc.oneof(
  fc.record({ is: fc.constantFrom('open', 'flush') }),
  { weight: 4, arbitrary: fc.record({ is: fc.constant('message'), to: fc.uniqueArray(member) }) },
  { weight: 2, arbitrary: fc.record({ is: fc.constant('answer'), to: member }) },
)

await test('each browser gets its messages and answers in order and once, however they are batched', async (t) => {
  const host = memberHost()
  const worlds = await Promise.all(Array.from({ length: MEMBERS }, () => startMember(t, host)))
  const received: string[][] = worlds.map(() => [])
  const expected: string[][] = worlds.map(() => [])
  for (const [at, { browser }] of worlds.entries()) {
    browser.on('message', (data: Buffer) => received[at]?.push(data.toString()))
  }
  let count = 0
  const take = (one: Event): void => {
    if (!('to' in one)) return host.batch[one.is]()
    const text = `${one.is} ${++count}`
    const frame = frameOf(Buffer.from(text))
    for (const at of [one.to].flat()) {
      const outbox = worlds[at]?.member.outbox
      if (one.is === 'answer') outbox?.answer(frame)
      else outbox?.deliver(frame, 'a stream')
      expected[at]?.push(text)
    }
  }
  const order = fc.asyncProperty(fc.array(event, { minLength: 20, maxLength: 60 }), async (events) => {
    for (const one of events) take(one)
    take({ is: 'flush' })
    for (let at = 0; at < MEMBERS; at++) take({ is: 'answer', to: at })
    await until(() => received.every((texts, at) => texts.at(-1) === expected[at]?.at(-1)), 'everything has arrived')
    t.same(received, expected)
    const texts = expected.flat()
    t.same(host.traffic, { messages: texts.length, bytes: texts.join('').length }, 'each message is counted')
    for (const texts of [...received, ...expected]) texts.length = 0
    Object.assign(host.traffic, { messages: 0, bytes: 0 })
  })
  await fc.assert(order, { numRuns: 200 })
})

await test('messages that are read together leave in one write', async (t) => {
  const { member, host, wire } = await startMember(t)
  const writes = t.capture(wire, 'write', wire.write.bind(wire))
  host.batch.open()
  for (const text of ['one', 'two', 'three']) member.outbox.deliver(frameOf(Buffer.from(text)), text)
  host.batch.flush()
  t.equal(writes().length, 1)
})

await test('a message waits behind an older one of its stream, although the browser could take it', async (t) => {
  const limits = { ...memberHost().limits }
  const { member, browser } = await startMember(t, { ...memberHost(), limits })
  const received: string[] = []
  browser.on('message', (data: Buffer) => received.push(data.toString()))
  const message = (text: string): void => member.outbox.deliver(frameOf(Buffer.from(text)), 'a stream')
  const room = limits.conflateBytes
  limits.conflateBytes = -1
  message('one')
  limits.conflateBytes = room
  message('two')
  member.outbox.relieve()
  message('three')
  await until(() => received.at(-1) === 'three')
  t.same(received, ['two', 'three'])
})

await test('a batch forgets the browsers that have got what waited for them', (t) => {
  const batch = new WriteBatch()
  let flushed = 0
  const waiting = { flush: () => void flushed++ }
  for (let count = 1; count <= 3; count++) {
    batch.open()
    batch.begin(waiting, Buffer.alloc(1))
    batch.flush()
    t.equal(flushed, count)
  }
  t.end()
})

await test('frames that leave together are one sequence for all who get the same', (t) => {
  const [one, two, three] = [frameOf(Buffer.alloc(1)), frameOf(Buffer.alloc(2)), frameOf(Buffer.alloc(3))]
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

await test('room for the messages of one batch says nothing about the next one', async (t) => {
  const { member, host, wire } = await startMember(t)
  const { batch, traffic, limits } = host
  const frame = frameOf(Buffer.from('x'))
  batch.open()
  member.outbox.deliver(frame, 'a stream')
  batch.flush()
  waitingOn(wire, limits.conflateBytes + 1)
  batch.open()
  member.outbox.answer(frame)
  member.outbox.deliver(frame, 'a stream')
  batch.flush()
  t.equal(traffic.messages, 2, 'the last one waits until there is room')
})
