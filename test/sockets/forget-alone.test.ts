import { test, type Test } from 'tap'
import { forgetAll, isKnownForgetAll } from '../../src/sockets/feed/streams/forget.ts'
import { Subscriber, Subscription } from '../../src/sockets/feed/streams/subscription.ts'
import type { FeedRequest, UpstreamMessage } from '../../src/sockets/feed/wire/index.ts'
import { parseRequest } from '../../src/sockets/feed/wire/parse-request.ts'
import { ManualTimers } from '../support/time/manual-timers.ts'

const PREFIX = Buffer.from('{')

function requestOf(types: unknown): FeedRequest {
  const request = parseRequest(Buffer.from(JSON.stringify({ forget_all: types })))
  if (request === undefined) throw new Error('the feed does not know this request')
  return request
}

/** An answer without the request that it echoes. */
function shown(text: string): string {
  const at = Math.max(text.lastIndexOf('"forget_all":'), text.lastIndexOf('"error":'))
  return text.slice(at).split(',"msg_type"')[0] ?? ''
}

/** A browser, its streams, and what it is told. */
function forgetting(t: Test) {
  const timers = new ManualTimers(t)
  const log: string[] = []
  const browser = {
    hold: () => (log.push('held'), () => log.push('released')),
    outbox: {
      sendConflated: () => undefined,
      answer: (frame: Buffer) => log.push(shown(frame.toString())),
    },
  }
  const subscriber = new Subscriber(browser as never)
  const subscribe = (symbol: string, type: 'ticks' | 'candles' = 'ticks', id: string | undefined = symbol) => {
    const stream = {
      spec: { identity: `${type} ${symbol}`, type, symbol, startedBy: 'network' },
      id,
      link: undefined,
      leave: (each: Subscription) => {
        each.isAttached = false
        log.push(`left ${symbol}`)
      },
    }
    return new Subscription(subscriber, stream, PREFIX, ++subscriber.lastNumber)
  }
  const forget = (types: unknown, ask?: Parameters<typeof forgetAll>[2]): void =>
    forgetAll(subscriber, requestOf(types), ask)
  return { timers, subscriber, subscribe, forget, logged: () => log.splice(0) }
}

await test('forget_all ends the streams of its types, and names them, and leaves the others', (t) => {
  const { subscribe, forget, logged, subscriber, timers } = forgetting(t)
  for (const each of [subscribe('A'), subscribe('B', 'candles'), subscribe('C')]) each.served()
  forget('ticks')
  t.same(logged(), ['held', 'left A', 'left C', '"forget_all":["A","C"]', 'released'])
  t.same([...subscriber.subscriptions.keys()], ['candles B'])
  t.same(timers.delays, [])
  forget(['candles', 'ticks'])
  t.same(logged(), ['held', 'left B', '"forget_all":["B"]', 'released'])
  forget('ticks')
  t.same(logged(), ['held', '"forget_all":[]', 'released'])
  t.end()
})

await test('what upstream forgets of the browser itself is named, too, and an error of upstream is the answer', (t) => {
  const { subscribe, forget, logged } = forgetting(t)
  subscribe('A').served()
  const answers: ((message: UpstreamMessage) => void)[] = []
  const ask = (onAnswer: (message: UpstreamMessage) => void): void => void answers.push(onAnswer)
  const answer = (text: string, errorCode?: string): void =>
    answers.shift()?.({ body: Buffer.from(text), errorCode } as unknown as UpstreamMessage)
  forget('ticks', ask)
  t.same(logged(), ['held'], 'it waits for upstream')
  answer('"error":{}}', 'Unknown')
  t.same(logged(), ['"error":{}}', 'released'])
  for (const [body, shown] of [
    ['"forget_all":["own"]}', '["A","own"]'],
    ['"forget_all":1}', '[]'],
    ['"other":1}', '[]'],
  ] as const) {
    forget('ticks', ask)
    logged()
    answer(body)
    t.equal(logged().at(-2), `"forget_all":${shown}`)
  }
  t.end()
})

await test('a stream that has no answer yet ends with it, and the browser waits for that', async (t) => {
  const { subscribe, forget, logged, timers } = forgetting(t)
  const [a, b] = [subscribe('A'), subscribe('B')]
  forget('ticks')
  t.same([logged(), timers.delays], [['held'], [5000]])
  b.served()
  t.same(logged(), ['left B'])
  await Promise.resolve()
  t.same(logged(), [], 'another one is still to come')
  a.served()
  t.same(logged(), ['left A', '"forget_all":["B","A"]', 'released'], 'before later requests for the same')
  t.same(timers.delays, [])
})

await test('a stream without an id, one that is refused and one that has ended otherwise are not named', async (t) => {
  const { subscribe, forget, logged } = forgetting(t)
  const [none, refused, gone, served] = [subscribe('A', 'ticks', ''), subscribe('B'), subscribe('C'), subscribe('D')]
  Object.assign(none.stream, { id: undefined })
  forget('ticks')
  none.served()
  t.same(logged(), ['held', 'left A'])
  refused.end()
  gone.isAttached = false
  gone.served()
  served.served()
  await Promise.resolve()
  t.same(logged(), ['left B', 'left D', '"forget_all":["D"]', 'released'])
})

await test('an earlier request that takes the place of a refused one ends too, and a later one goes on', async (t) => {
  const { subscribe, forget, logged, subscriber } = forgetting(t)
  const first = subscribe('A')
  const waiting = ++subscriber.lastNumber
  forget('ticks')
  let second: Subscription | undefined
  first.afterAnswer(() => (second = new Subscription(subscriber, first.stream, PREFIX, waiting)))
  const later = subscribe('B')
  first.end()
  await Promise.resolve()
  await Promise.resolve()
  t.same(logged(), ['held', 'left A'])
  later.served()
  second?.served()
  await Promise.resolve()
  t.same(logged(), ['left A', '"forget_all":["A"]', 'released'])
  t.same([...subscriber.subscriptions.values()], [later])
})

await test('a stream that is answered while another one is being refused does not end the wait for an earlier request', async (t) => {
  const { subscribe, forget, logged, subscriber } = forgetting(t)
  const [first, other] = [subscribe('A'), subscribe('B')]
  const waiting = ++subscriber.lastNumber
  forget('ticks')
  let second: Subscription | undefined
  first.afterAnswer(() => (second = new Subscription(subscriber, first.stream, PREFIX, waiting)))
  first.end()
  other.served()
  await Promise.resolve()
  await Promise.resolve()
  t.same(logged(), ['held', 'left A', 'left B'])
  second?.served()
  t.same(logged(), ['left A', '"forget_all":["B","A"]', 'released'])
})

await test('after five seconds forget_all is answered, and what has no answer yet ends with its first one, and is not named', async (t) => {
  const { subscribe, forget, logged, timers, subscriber } = forgetting(t)
  const [a, b] = [subscribe('A'), subscribe('B')]
  forget('ticks')
  a.served()
  timers.run()
  t.same(logged(), ['held', 'left A', '"forget_all":["A"]', 'released'])
  t.equal(b.isForgotten, true)
  b.served()
  await Promise.resolve()
  t.same(logged(), ['left B'], 'it is answered once')
  t.equal(subscriber.subscriptions.size, 0)
  const c = subscribe('C')
  t.equal(c.isForgotten, false)
  forget('candles')
  t.same(logged(), ['held', '"forget_all":[]', 'released'])
})

await test('a second forget_all does not wait for what an earlier one has ended already', async (t) => {
  const { subscribe, forget, logged, timers } = forgetting(t)
  subscribe('A')
  forget('ticks')
  timers.run()
  logged()
  forget('ticks')
  t.same([logged(), timers.delays], [['held', '"forget_all":[]', 'released'], []])
})

await test('it is known which names upstream takes', (t) => {
  for (const [types, isKnown] of [
    ['ticks', true],
    ['candles', true],
    ['proposal', true],
    [['ticks', 'candles'], true],
    ['balance', false],
    [['ticks', 'balance'], false],
    [[], false],
    [1, false],
  ] as const) {
    t.equal(isKnownForgetAll(requestOf(types)), isKnown, JSON.stringify(types))
  }
  t.end()
})
