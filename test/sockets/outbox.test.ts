import { test } from 'tap'
import { Outbox } from '../../src/sockets/feed/browser/outbox.ts'
import { WriteBatch } from '../../src/sockets/feed/wire/write-batch.ts'
import { frameOf } from '../../src/sockets/feed/wire/frame-of.ts'
import { BYTES_PER_MESSAGE, type SocketEnd } from '../../src/sockets/socket-end.ts'

const message = (text: string) => frameOf(Buffer.from(text))

/** An outbox whose browser has 100 bytes before it is slow, and 1000 before it is full; and what is written and counted. */
function outboxOf() {
  const world = { waitingBytes: 0, written: [] as unknown[], full: 0, noted: [] as number[] }
  const end = {
    get waitingBytes() {
      return world.waitingBytes
    },
    write: (frames: Buffer, unwatched: number) => world.written.push([frames.toString('latin1'), unwatched]),
    writeParts: (...parts: Buffer[]) => world.written.push(parts.map(String)),
    send: (data: Buffer, isBinary: boolean, unwatched: number) =>
      world.written.push([data.toString(), isBinary, unwatched]),
  } as unknown as SocketEnd
  const batch = new WriteBatch()
  const traffic = { messages: 0, bytes: 0 }
  const conflated = { messages: 0 }
  const waiting = { add: (bytes: number) => world.noted.push(bytes) }
  const limits = { conflateBytes: 100, maxBufferedBytes: 1000, slowConsumerMs: 1, requestsPerMinute: 1 }
  const host = { limits, batch, traffic, conflated, waiting } as unknown as ConstructorParameters<typeof Outbox>[1]
  const outbox = new Outbox(end, host, () => world.full++)
  return { world, outbox, batch, traffic, conflated, written: () => world.written.splice(0) }
}

const wire = (...texts: string[]) => Buffer.concat(texts.map(message)).toString('latin1')

await test('a message leaves at once while the browser has no more than FEED_CONFLATE_BYTES to read, and is counted', (t) => {
  const { outbox, world, traffic, written } = outboxOf()
  world.waitingBytes = 100
  outbox.deliver(message('one'), 'A')
  outbox.answer(message('two!'))
  t.same(written(), [
    [wire('one'), 25],
    [wire('two!'), 25],
  ])
  t.same(traffic, { messages: 2, bytes: 7 })
  t.equal(outbox.conflatedBytes, 0)
  t.end()
})

await test('for a slow browser the newest message of each stream waits, in the order in which they came', (t) => {
  const { outbox, world, traffic, conflated, written } = outboxOf()
  world.waitingBytes = 101
  for (const [text, stream] of [
    ['A1', 'A'],
    ['B1', 'B'],
    ['A22', 'A'],
  ] as const) {
    outbox.deliver(message(text), stream)
  }
  t.same([written(), traffic.messages, conflated.messages], [[], 0, 1])
  t.equal(outbox.conflatedBytes, 4 + 5 + 2 * BYTES_PER_MESSAGE)
  t.same(world.noted, [4 + BYTES_PER_MESSAGE, 4 + BYTES_PER_MESSAGE], 'a newer one takes the place of the one before')
  world.waitingBytes = 51
  outbox.relieve()
  outbox.deliver(message('C1'), 'C')
  t.same(written(), [], 'what waits is not overtaken')
  world.waitingBytes = 50
  outbox.relieve()
  t.same(written(), [[wire('B1', 'A22', 'C1'), 25]])
  t.same(traffic, { messages: 3, bytes: 7 })
  t.equal(outbox.conflatedBytes, 0)
  outbox.relieve()
  t.same(written(), [])
  outbox.deliver(message('D'), 'D')
  t.same(written(), [[wire('D'), 25]], 'it is slow no more')
  t.end()
})

await test('the message of a stream that waits can be sent before its time, once', (t) => {
  const { outbox, world, traffic, conflated, written } = outboxOf()
  outbox.sendConflated('A')
  world.waitingBytes = 101
  outbox.deliver(message('A1'), 'A')
  outbox.deliver(message('B1'), 'B')
  outbox.sendConflated('A')
  outbox.sendConflated('A')
  t.same(written(), [[wire('A1'), 25]])
  t.equal(outbox.conflatedBytes, 4 + BYTES_PER_MESSAGE)
  t.same([traffic.messages, conflated.messages], [1, 0])
  t.end()
})

await test('what is small waits for the end of an open batch, and leaves in one write before anything larger', (t) => {
  const { outbox, batch, traffic, written } = outboxOf()
  batch.open()
  outbox.answer(message('one'))
  outbox.answer(message('two'))
  const [almost, large] = ['x'.repeat(1019), 'y'.repeat(1020)] as [string, string]
  outbox.answer(message(almost))
  t.same([written(), traffic.messages], [[], 3])
  outbox.answer(message(large))
  t.same(written(), [
    [wire('one', 'two', almost), 25],
    [wire(large), 25],
  ])
  outbox.answer(message('three'))
  outbox.flush()
  outbox.flush()
  t.same(written(), [[wire('three'), 25]])
  batch.flush()
  t.same(written(), [])
  t.end()
})

await test('an answer in two parts leaves after what waits for the batch, and counts as one message', (t) => {
  const { outbox, batch, traffic, written } = outboxOf()
  batch.open()
  outbox.answer(message('one'))
  const [start, rest] = [message('start'), Buffer.from('rest!')]
  outbox.answer(start, rest)
  t.same(written(), [
    [wire('one'), 25],
    [String(start), 'rest!'],
  ])
  t.same(traffic, { messages: 2, bytes: 13 })
  batch.flush()
  t.end()
})

await test('a message of the own socket is passed on as it is', (t) => {
  const { outbox, traffic, written } = outboxOf()
  outbox.pass(Buffer.from('own'), true)
  outbox.pass(Buffer.from('own text'), false)
  t.same(written(), [
    ['own', true, 25],
    ['own text', false, 25],
  ])
  t.same(traffic, { messages: 2, bytes: 11 })
  t.end()
})

await test('a browser is full when more than MAX_BUFFERED_BYTES wait after a write', (t) => {
  const { outbox, world } = outboxOf()
  world.waitingBytes = 1000
  outbox.answer(message('one'))
  outbox.answer(message('start'), Buffer.from('rest'))
  t.equal(world.full, 0)
  world.waitingBytes = 1001
  outbox.answer(message('one'))
  outbox.answer(message('start'), Buffer.from('rest'))
  t.equal(world.full, 2)
  t.end()
})

await test('an outbox that has ended sends nothing, and holds nothing', (t) => {
  const { outbox, world, traffic, written } = outboxOf()
  world.waitingBytes = 101
  outbox.deliver(message('A1'), 'A')
  outbox.end()
  t.equal(outbox.conflatedBytes, 0)
  world.waitingBytes = 0
  outbox.relieve()
  outbox.deliver(message('A2'), 'A')
  outbox.answer(message('one'))
  outbox.answer(message('start'), Buffer.from('rest'))
  t.same([written(), traffic], [[], { messages: 0, bytes: 0 }])
  t.end()
})
