import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { test, type Test } from 'tap'
import { Reads } from '../../src/sockets/feed/streams/reads.ts'
import { CacheQuota } from '../../src/sockets/feed/streams/shared-answer.ts'
import type { Browser, Listener, WriteRequest } from '../../src/sockets/feed/upstream/index.ts'
import type { FeedRequest, UpstreamMessage } from '../../src/sockets/feed/wire/index.ts'
import { parseRequest } from '../../src/sockets/feed/wire/parse-request.ts'
import { ManualTimers } from '../support/time/manual-timers.ts'
import { replace } from '../support/time/replace.ts'

const BYTES_PER_READER = 512

function requestOf(more: object = {}): FeedRequest {
  const request = parseRequest(Buffer.from(JSON.stringify({ active_symbols: 'brief', ...more })))
  if (request === undefined) throw new Error('the feed does not know this request')
  return request
}

const answerOf = (value: number, errorCode?: string): UpstreamMessage =>
  ({ body: Buffer.from(`"v":${value}}`), subscription: Buffer.from(''), errorCode }) as unknown as UpstreamMessage

/** Reads of browsers, and an upstream that a test plays. */
function readsAlone(t: Test) {
  const timers = new ManualTimers(t)
  const world = { now: 1000, admits: true, log: [] as string[] }
  replace(t, performance, 'now', () => world.now)
  const log = (...entry: unknown[]): void => void world.log.push(entry.join(' '))
  const asked: { readonly text: string; readonly listener: Listener }[] = []
  const context = {
    oneShots: {
      ask: (write: WriteRequest, listener: Listener) => asked.push({ text: String(write(7)), listener }),
      outage: { depart: (browser: { name: string }) => log(browser.name, 'departs') },
      connection: { release: (id: number) => log('released', id) },
    },
    fairShare: { admits: (browser: { name: string }) => (log(browser.name, 'admitted'), world.admits) },
    kept: new CacheQuota(),
  } as unknown as ConstructorParameters<typeof Reads>[0]
  const metrics = { hit: (operation: string) => log('hit', operation) } as unknown as ConstructorParameters<
    typeof Reads
  >[1]
  const reads = new Reads(context, metrics)
  const browserOf = (name: string): Browser => {
    const outbox = {
      answer: (...frames: Buffer[]) => {
        const [, value] = /("v":\d+|RateLimit)/.exec(Buffer.concat(frames).toString()) ?? []
        log(name, 'gets', value)
      },
    }
    return {
      name,
      outbox,
      isOver: false,
      end: () => log(name, 'ends'),
      expectAnswer: () => (log(name, 'expects'), () => log(name, 'arrived')),
      awaits: (bytes: number) => (log(name, 'awaits', bytes), () => log(name, 'answered')),
    } as unknown as Browser
  }
  const logged = (): string[] => world.log.splice(0)
  /** Upstream answers what it was asked last. */
  const answer = (message: UpstreamMessage): void => asked.at(-1)?.listener.received(message)
  return { reads, world, timers, asked, browserOf, answer, logged }
}

const awaits = (name: string, { prefix }: FeedRequest): string => `${name} awaits ${prefix.length + BYTES_PER_READER}`
const asks = (name: string, request: FeedRequest): string[] => [
  `${name} admitted`,
  `${name} expects`,
  awaits(name, request),
]

await test('equal requests share one answer while it is on its way, and for as long as it is kept', (t) => {
  const { reads, asked, browserOf, answer, logged, timers } = readsAlone(t)
  const [request, same] = [requestOf({ req_id: 1 }), requestOf({ req_id: 2 })]
  reads.share(browserOf('a'), request, 3000)
  t.same(logged(), asks('a', request))
  t.same(
    asked.map(({ text }) => text),
    ['{"active_symbols":"brief","req_id":7}'],
  )
  reads.share(browserOf('b'), same, 3000)
  t.same(logged(), ['hit active_symbols', awaits('b', same)])
  answer(answerOf(1))
  t.same(logged(), ['a answered', 'a arrived', 'a gets "v":1', 'b answered', 'b gets "v":1'])
  t.same(timers.delays, [3000])
  reads.share(browserOf('c'), same, 3000)
  t.same(logged(), ['hit active_symbols', 'c gets "v":1'])
  t.equal(asked.length, 1)
  reads.share(browserOf('d'), requestOf({ landing_company: 'x' }), 3000)
  t.equal(asked.length, 2, 'another request is another matter')
  timers.run()
  logged()
  reads.share(browserOf('e'), request, 3000)
  t.same(logged(), asks('e', request))
  t.equal(asked.length, 3)
  t.end()
})

await test('an error reaches all who wait for it, and nobody after them', (t) => {
  const { reads, asked, browserOf, answer, logged, timers } = readsAlone(t)
  const request = requestOf()
  for (const name of ['a', 'b']) reads.share(browserOf(name), request, 3000)
  logged()
  answer(answerOf(1, 'Unknown'))
  t.same(logged(), ['a answered', 'a arrived', 'a gets "v":1', 'b answered', 'b gets "v":1'])
  t.same(timers.delays, [])
  reads.share(browserOf('c'), request, 3000)
  t.same([asked.length, logged()], [2, asks('c', request)])
  t.end()
})

await test('a browser that asks for itself alone shares nothing, neither what is on its way nor what has come', (t) => {
  const { reads, asked, browserOf, answer, logged, timers } = readsAlone(t)
  const request = requestOf()
  reads.single(browserOf('a'), request)
  reads.single(browserOf('b'), request)
  t.same([asked.length, logged()], [2, [...asks('a', request), ...asks('b', request)]])
  answer(answerOf(2))
  t.same(logged(), ['b answered', 'b arrived', 'b gets "v":2'])
  reads.share(browserOf('c'), request, 3000)
  t.same([asked.length, timers.delays], [3, []])
  t.end()
})

await test('a browser beyond its share is told so, and nobody waits for what was not asked', (t) => {
  const { reads, world, asked, browserOf, logged } = readsAlone(t)
  const request = requestOf()
  world.admits = false
  reads.share(browserOf('a'), request, 3000)
  reads.single(browserOf('a'), request)
  t.same(logged(), ['a admitted', 'a gets RateLimit', 'a admitted', 'a gets RateLimit'])
  world.admits = true
  reads.share(browserOf('b'), request, 3000)
  t.same([asked.length, logged()], [1, asks('b', request)])
  world.admits = false
  reads.share(browserOf('c'), request, 3000)
  t.same(logged(), ['hit active_symbols', awaits('c', request)], 'to share what is on its way costs nothing')
  t.end()
})

await test('a request that has no answer for ten seconds is asked anew for others, and a late answer ends nothing of theirs', (t) => {
  const { reads, world, asked, browserOf, logged, timers } = readsAlone(t)
  const request = requestOf()
  reads.share(browserOf('a'), request, 3000)
  world.now += 9999
  reads.share(browserOf('b'), request, 3000)
  t.equal(asked.length, 1)
  world.now += 1
  reads.share(browserOf('c'), request, 3000)
  t.equal(asked.length, 2)
  logged()
  asked[0]?.listener.received(answerOf(1, 'Unknown'))
  t.same(logged(), ['a answered', 'a arrived', 'a gets "v":1', 'b answered', 'b gets "v":1'])
  reads.share(browserOf('d'), request, 3000)
  t.same([asked.length, logged()], [2, ['hit active_symbols', awaits('d', request)]])
  asked[1]?.listener.received(answerOf(2))
  t.same(timers.delays, [3000])
  t.end()
})

await test('browsers whose answer is lost wait no more, and the next one asks anew', (t) => {
  const { reads, asked, browserOf, logged } = readsAlone(t)
  const request = requestOf()
  for (const name of ['a', 'b']) reads.share(browserOf(name), request, 3000)
  logged()
  asked[0]?.listener.lost?.()
  t.same(logged(), ['a departs', 'a answered', 'a arrived', 'b departs', 'b answered'])
  reads.share(browserOf('c'), request, 3000)
  t.equal(asked.length, 2)
  t.end()
})

await test('an answer that is kept no more takes no memory', async (t) => {
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  const { reads, asked, browserOf, timers } = readsAlone(t)
  const ended = (errorCode?: string): WeakRef<Listener> => {
    reads.share(browserOf('a'), requestOf({ landing_company: errorCode ?? 'none' }), 3000)
    const { listener } = asked.pop() ?? {}
    listener?.received(answerOf(1, errorCode))
    timers.run()
    return new WeakRef(listener as Listener)
  }
  const answers = [ended(), ended('Unknown')]
  await turn()
  collectGarbage()
  t.strictSame(
    answers.map((answer) => answer.deref()),
    [undefined, undefined],
  )
})
