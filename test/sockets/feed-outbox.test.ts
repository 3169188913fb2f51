import { setImmediate as nextTurn } from 'node:timers/promises'
import { test } from 'tap'
import { WITHOUT_CODE } from '../../src/sockets/close-codes.ts'
import { frameOf, startOfFrame } from '../../src/sockets/feed/wire/frame-of.ts'
import { WaitingBytes } from '../../src/sockets/waiting-bytes.ts'
import { memberHost, startMember, waitingOn, type MemberWorld } from '../support/feed/started-member.ts'
import { until } from '../support/time/until.ts'

/** Sends a message of a stream. */
function deliver({ member }: MemberWorld, text: string, stream: string): void {
  member.outbox.deliver(frameOf(Buffer.from(text)), stream)
}

/** The messages that arrive at a browser. */
function textsOf({ browser }: MemberWorld): string[] {
  const texts: string[] = []
  browser.on('message', (data: Buffer) => texts.push(data.toString()))
  return texts
}

await test('above FEED_CONFLATE_BYTES the newest message of each stream waits until half of that is left', async (t) => {
  const world = await startMember(t)
  const { member, host, wire } = world
  const { conflateBytes } = host.limits
  const texts = textsOf(world)
  const wait = waitingOn(wire, conflateBytes)
  deliver(world, 'first of A', 'A')
  await until(() => texts.length === 1, 'there is room for it')
  wait(conflateBytes + 1)
  deliver(world, 'second of A, which gives way', 'A')
  deliver(world, 'first of B', 'B')
  deliver(world, 'third of A', 'A')
  t.same(host.traffic, { messages: 1, bytes: 'first of A'.length }, 'what may still give way does not count')
  wait(conflateBytes / 2 + 1)
  member.outbox.relieve()
  deliver(world, 'last of A', 'A')
  wait(conflateBytes / 2)
  member.outbox.relieve()
  deliver(world, 'second of B', 'B')
  const expected = ['first of A', 'first of B', 'last of A', 'second of B']
  await until(() => texts.at(-1) === expected.at(-1), 'the rest arrives')
  t.same(texts, expected, 'in the order in which upstream sent them')
  t.same(host.traffic, { messages: 4, bytes: expected.join('').length }, 'what gave way does not count')
  t.equal(host.conflated.messages, 2)
})

await test('what waits behind a message larger than FEED_CONFLATE_BYTES leaves after it', async (t) => {
  const world = await startMember(t)
  const texts = textsOf(world)
  const large = 'large'.padEnd(2 * world.host.limits.conflateBytes)
  world.wire.cork()
  deliver(world, large, 'A')
  deliver(world, 'newest', 'A')
  world.wire.uncork()
  await until(() => texts.length === 2, 'both arrive')
  t.ok(texts[0] === large)
  t.equal(texts[1], 'newest')
})

await test('a browser that is gone is sent nothing, and nothing is counted for it', async (t) => {
  const world = await startMember(t)
  const { member, host } = world
  member.end(WITHOUT_CODE)
  member.outbox.answer(frameOf(Buffer.from('late')))
  deliver(world, 'late', 'A')
  t.same(host.traffic, { messages: 0, bytes: 0 })
})

await test('what waits to be replaced or sent counts as waiting bytes, and no longer once it has left', async (t) => {
  const world = await startMember(t)
  const { member, wire, host } = world
  const { conflateBytes } = host.limits
  const wait = waitingOn(wire, conflateBytes + 1)
  const more = (): number => member.waitingBytes - wire.writableLength
  deliver(world, 'x'.repeat(1000), 'A')
  const one = more()
  t.ok(one > 1000)
  deliver(world, 'y'.repeat(1000), 'B')
  t.equal(more(), 2 * one)
  deliver(world, 'x'.repeat(1000), 'A')
  t.equal(more(), 2 * one, 'a newer message takes the place of the one before')
  wait(0)
  const texts = textsOf(world)
  member.outbox.sendConflated('A')
  t.equal(more(), one)
  member.outbox.relieve()
  await until(() => texts.length === 2, 'both have left')
  await until(() => more() === 0, 'nothing waits any more')
})

await test('what waits to be replaced is noted for the whole process, once for each stream', async (t) => {
  let weighed = 0
  const host = { ...memberHost(), waiting: new WaitingBytes(2500, () => ++weighed) }
  const world = await startMember(t, host)
  waitingOn(world.wire, host.limits.conflateBytes + 1)
  for (const stream of ['A', 'A', 'A']) deliver(world, 'x'.repeat(1000), stream)
  await nextTurn()
  t.equal(weighed, 0, 'one message waits')
  deliver(world, 'x'.repeat(1000), 'B')
  await nextTurn()
  t.equal(weighed, 1)
})

await test('of a large answer that is shared every byte counts, and it leaves after what waits for the end of the batch', async (t) => {
  const world = await startMember(t)
  const { member, host } = world
  const texts = textsOf(world)
  const [own, shared] = ['{"req_id":1,', `"history":"${'1'.repeat(100_000)}"}`]
  host.batch.open()
  deliver(world, 'before', 'A')
  member.outbox.answer(startOfFrame(shared.length, Buffer.from(own)), Buffer.from(shared))
  host.batch.flush()
  await until(() => texts.length === 2, 'both arrive')
  t.equal(texts[0], 'before')
  t.ok(texts[1] === own + shared)
  t.same(host.traffic, { messages: 2, bytes: texts.join('').length })
})

await test('a browser to which too much waits is read no more after an answer, shared or not', async (t) => {
  for (const isShared of [true, false]) {
    const world = await startMember(t)
    const { member, host, wire } = world
    waitingOn(wire, host.limits.maxBufferedBytes + 1)
    if (isShared) member.outbox.answer(startOfFrame(1, Buffer.from('{')), Buffer.from('}'))
    else member.outbox.answer(frameOf(Buffer.from('{}')))
    t.ok(world.socket.isPaused, isShared ? 'shared' : 'its own')
  }
})

await test('a message that is too large for a batch leaves after those that wait for the end of it', async (t) => {
  const world = await startMember(t)
  const texts = textsOf(world)
  const sent = ['small', 'large'.padEnd(2000), 'after it']
  world.host.batch.open()
  for (const text of sent) deliver(world, text, text)
  world.host.batch.flush()
  await until(() => texts.length === 3, 'all arrive')
  t.same(texts, sent)
})

await test('what comes from the own upstream socket counts, too', async (t) => {
  const world = await startMember(t)
  const texts = textsOf(world)
  world.member.pass(Buffer.from('its own'), false)
  await until(() => texts.length === 1)
  t.same(texts, ['its own'])
  t.same(world.host.traffic, { messages: 1, bytes: 7 })
})
