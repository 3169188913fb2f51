import { test, type Test } from 'tap'
import { Subscriber, Subscription, SymbolList } from '../../src/sockets/feed/streams/subscription.ts'
import type { Connection } from '../../src/sockets/feed/upstream/index.ts'
import { ManualTimers } from '../support/time/manual-timers.ts'

type StreamType = 'ticks' | 'candles'

const PREFIX = Buffer.from('prefix')
const ERROR = Buffer.from('error')

/** A browser whose outbox notes what it is given, and its streams, which note who leaves them. */
function browserAlone() {
  const log: unknown[] = []
  const browser = {
    isWaiting: false,
    outbox: {
      sendConflated: (identity: string) => log.push(`conflated ${identity}`),
      answer: (frame: Buffer) => log.push(frame.toString()),
    },
  }
  const subscriber = new Subscriber(browser as never)
  const streamOf = (identity: string, type: StreamType = 'ticks', id?: string, connection?: { isSilent: boolean }) => ({
    spec: { identity, type, symbol: identity, startedBy: 'network' },
    id,
    link: connection && ({ connection } as never),
    leave: (each: Subscription) => {
      each.isAttached = false
      log.push(`left ${identity}`)
    },
  })
  const subscribe = (stream: ReturnType<typeof streamOf>, number = 1, list?: SymbolList): Subscription =>
    new Subscription(subscriber, stream, PREFIX, number, list)
  return { browser, subscriber, streamOf, subscribe, logged: () => log.splice(0) }
}

/** A list of two symbols, and a browser that has asked for it. */
function listOfTwo(t: Test) {
  const timers = new ManualTimers(t)
  const world = browserAlone()
  const list = new SymbolList(2)
  const [one, other] = ['A', 'B'].map((symbol) => world.subscribe(world.streamOf(symbol), 1, list))
  if (one === undefined || other === undefined) throw new Error('two')
  const sent: string[] = []
  const arrive = (part: Subscription): void =>
    list.arrived(part, () => {
      sent.push(part.identity)
      part.served()
    })
  return { ...world, timers, list, one, other, sent, arrive }
}

await test('a subscription knows its browser, its stream and its request', (t) => {
  const { browser, subscriber, streamOf, subscribe } = browserAlone()
  t.equal(subscriber.lastNumber, 0)
  const stream = streamOf('A')
  const one = subscribe(stream, 7)
  t.equal(one.browser, browser)
  t.equal(one.stream, stream)
  t.equal(one.prefix, PREFIX)
  t.same([one.identity, one.number, one.list, one.isAttached, one.isServed], ['A', 7, undefined, true, false])
  t.same([...subscriber.subscriptions], [['A', one]])
  t.end()
})

await test('a browser without an answer on a silent connection is told which one is silent', (t) => {
  const { browser, subscriber, streamOf, subscribe } = browserAlone()
  const requests = { isSilent: true } as Connection
  t.equal(subscriber.silentConnection(requests), undefined, 'it expects nothing')
  browser.isWaiting = true
  t.equal(subscriber.silentConnection(requests), requests)
  t.equal(subscriber.silentConnection({ isSilent: false } as Connection), undefined)
  browser.isWaiting = false
  const served = subscribe(streamOf('A', 'ticks', 'id', { isSilent: false }))
  served.served()
  subscribe(streamOf('none')).served()
  t.equal(subscriber.silentConnection(requests), undefined, 'a served stream needs no request')
  const unserved = subscribe(streamOf('B', 'ticks', undefined, { isSilent: false }))
  t.equal(subscriber.silentConnection(requests), requests)
  unserved.served()
  const silent = { isSilent: true }
  subscribe(streamOf('C', 'ticks', 'other', silent)).served()
  t.equal(subscriber.silentConnection(requests), silent)
  t.equal(subscriber.silentConnection({ isSilent: false } as Connection), silent)
  t.end()
})

await test('a browser forgets a served stream by its id, gets what it had of it before, and may subscribe again', (t) => {
  const { subscriber, streamOf, subscribe, logged } = browserAlone()
  subscribe(streamOf('none')).served()
  const unserved = subscribe(streamOf('A', 'ticks', 'first'))
  const served = subscribe(streamOf('B', 'ticks', 'second'))
  served.served()
  t.equal(subscriber.forget(undefined), false)
  t.equal(subscriber.forget('third'), false)
  t.equal(subscriber.forget('first'), false, 'it has no answer yet')
  t.same(logged(), [])
  t.equal(subscriber.forget('second'), true)
  t.same(logged(), ['conflated B', 'left B'])
  t.same([...subscriber.subscriptions.keys()], ['none', 'A'])
  unserved.served()
  t.equal(subscriber.forget('first'), true)
  t.same(logged(), ['conflated A', 'left A'])
  t.end()
})

await test('a browser that is gone leaves all of its streams', (t) => {
  const { subscriber, streamOf, subscribe, logged } = browserAlone()
  subscribe(streamOf('A'))
  subscribe(streamOf('B'))
  subscriber.leave()
  t.same(logged(), ['left A', 'left B'])
  t.equal(subscriber.subscriptions.size, 0)
  t.end()
})

await test('a subscription that is left late does not take away the newer one to the same stream', (t) => {
  const { subscriber, streamOf, subscribe, logged } = browserAlone()
  const before = subscribe(streamOf('A'))
  const after = subscribe(streamOf('A'))
  before.leave()
  t.same(logged(), ['left A'])
  t.same([...subscriber.subscriptions.values()], [after])
  t.end()
})

await test('an answered forget_all concerns the requests of its types up to its number, and never fewer later', (t) => {
  const { subscriber, streamOf } = browserAlone()
  const concerned = (): number[][] =>
    (['ticks', 'candles'] as const).map((type) =>
      [0, 1, 2, 3, 4].filter((number) => subscriber.hasForgotten(streamOf('A', type).spec, number)),
    )
  t.same(concerned(), [[0], [0]])
  subscriber.forgetUnanswered(['candles', 'other'], 2)
  t.same(concerned(), [[0], [0, 1, 2]])
  subscriber.forgetUnanswered(['ticks', 'candles'], 1)
  t.same(concerned(), [
    [0, 1],
    [0, 1, 2],
  ])
  subscriber.forgetUnanswered(['ticks', 'candles'], 3)
  t.same(concerned(), [
    [0, 1, 2, 3],
    [0, 1, 2, 3],
  ])
  t.end()
})

await test('a request that a forget_all was answered for meanwhile ends with its first answer, and a later one does not', async (t) => {
  const { subscriber, streamOf, subscribe, logged } = browserAlone()
  subscriber.forgetUnanswered(['ticks'], 1)
  const forgotten = subscribe(streamOf('A'), 1)
  const refused = subscribe(streamOf('B'), 1)
  const later = subscribe(streamOf('C'), 2)
  t.same([forgotten.isForgotten, refused.isForgotten, later.isForgotten], [true, true, false])
  t.same(logged(), [])
  forgotten.served()
  t.same(logged(), ['conflated A', 'left A'])
  refused.end()
  await Promise.resolve()
  t.same(logged(), ['left B'])
  later.served()
  t.same(logged(), [])
})

await test('whoever waits for the answer of a subscription is told once, and at once if it is there', (t) => {
  const { streamOf, subscribe } = browserAlone()
  const one = subscribe(streamOf('A'))
  const told: unknown[] = []
  one.afterAnswer((isServed) => told.push('first', isServed))
  one.afterAnswer((isServed) => told.push('second', isServed))
  t.same(told, [])
  one.served()
  t.equal(one.isServed, true)
  t.same(told.splice(0), ['first', true, 'second', true])
  one.afterAnswer((isServed) => told.push('third', isServed))
  t.same(told.splice(0), ['third', true])
  one.served()
  t.same(told, [])
  t.end()
})

await test('a refused subscription has its error after what it had before, and who waits for it is told after all of them', async (t) => {
  const { subscriber, streamOf, subscribe, logged } = browserAlone()
  const one = subscribe(streamOf('A'))
  const told: unknown[] = []
  one.afterAnswer((isServed) => told.push(isServed))
  one.fail(ERROR)
  t.same(logged(), ['conflated A', 'error', 'left A'])
  t.same([told.length, subscriber.subscriptions.size], [0, 0])
  await Promise.resolve()
  t.same(told, [false])
  one.fail(ERROR)
  t.same(logged(), [], 'it is told once')
})

await test('a list is answered when all of its symbols have a price, and what comes later is sent at once', (t) => {
  const { list, one, other, sent, arrive, timers } = listOfTwo(t)
  t.same(list.parts, [one, other])
  t.equal(one.list, list)
  arrive(other)
  t.same([sent, list.isOver, timers.delays], [[], false, [1000]])
  arrive(one)
  t.same([sent, list.isOver, timers.delays], [['A', 'B'], true, []])
  arrive(one)
  t.same(sent, ['A', 'B', 'A'])
  t.end()
})

await test('a list waits a second for silent symbols, which are served without a price, and leaves out who has left', (t) => {
  const { streamOf, subscribe, timers } = listOfTwo(t)
  const list = new SymbolList(4)
  const parts = ['C', 'D', 'E', 'F'].map((symbol) => subscribe(streamOf(symbol), 1, list))
  const [there, silent, gone, left] = parts
  const sent: unknown[] = []
  for (const part of [there, there, gone]) if (part) list.arrived(part, () => void sent.push(part.identity))
  t.same(timers.delays, [1000], 'the second does not begin again')
  gone?.leave()
  left?.leave()
  timers.run()
  t.same(sent, ['C'])
  t.same(
    [there, silent, gone, left].map((part) => part?.isServed),
    [true, true, false, false],
  )
  t.end()
})

await test('a list that is refused before its answer ends whole, and after it only the refused symbol ends', (t) => {
  const refused = listOfTwo(t)
  refused.arrive(refused.other)
  refused.one.fail(ERROR)
  t.same(refused.logged(), ['conflated A', 'error', 'left A', 'left B'])
  t.same([refused.list.isOver, refused.timers.delays, refused.sent], [true, [], []])
  const answered = listOfTwo(t)
  answered.arrive(answered.one)
  answered.arrive(answered.other)
  answered.one.fail(ERROR)
  t.same(answered.logged(), ['conflated A', 'error', 'left A'])
  t.equal(answered.other.isAttached, true)
  t.end()
})
