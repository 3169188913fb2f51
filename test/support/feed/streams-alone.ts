import type { Test } from 'tap'
import { CacheQuota } from '../../../src/sockets/feed/streams/shared-answer.ts'
import type { Stream } from '../../../src/sockets/feed/streams/stream.ts'
import { Streams } from '../../../src/sockets/feed/streams/streams.ts'
import { Subscriber } from '../../../src/sockets/feed/streams/subscription.ts'
import type { FeedRequest, UpstreamMessage } from '../../../src/sockets/feed/wire/index.ts'
import { parseRequest } from '../../../src/sockets/feed/wire/parse-request.ts'
import { ManualTimers } from '../time/manual-timers.ts'
import { replace } from '../time/replace.ts'

export const MINE = '192.0.2.1'

function requestOf(fields: object): FeedRequest {
  const request = parseRequest(Buffer.from(JSON.stringify({ ...fields, subscribe: 1 })))
  if (request === undefined) throw new Error('the feed does not know this request')
  return request
}
export const ticks = (...symbols: string[]): FeedRequest =>
  requestOf({ ticks: symbols.length > 1 ? symbols : symbols[0] })
export const history = (more: object = {}): FeedRequest =>
  requestOf({ ticks_history: 'A', end: 'latest', count: 1, ...more })

export const message = (fields: object): UpstreamMessage =>
  ({ body: Buffer.from('"m":1}'), subscription: Buffer.from(''), ...fields }) as unknown as UpstreamMessage

/** The streams of a process, whose pool of places a test plays. */
export function streamsAlone(t: Test, maxSubscriptions = 9) {
  const timers = new ManualTimers(t)
  const log: string[] = []
  const started: Stream[] = []
  const world = { now: 1000, admits: true, places: 100, taken: 0, hasPlace: true, asked: 0 }
  replace(t, performance, 'now', () => world.now)
  const context = {
    pool: {
      get takenPlaces() {
        return world.taken
      },
      get places() {
        return world.places
      },
      place: (stream: Stream) => (world.hasPlace && started.push(stream), world.hasPlace),
    },
    fairShare: {
      streamsPerAddress: 2,
      admits: (_browser: unknown, count: number) => ((world.asked = count), world.admits),
      refused: () => undefined,
    },
    feedMetrics: { hit: (operation: string) => log.push(`hit ${operation}`), refused: { inc: () => undefined } },
    kept: new CacheQuota(),
    oneShots: { ask: () => undefined },
    log: { warn: () => undefined },
    limits: { cacheMs: 5000, lingerMs: 1000, maxSubscriptions, reconnectSpreadMs: 1000 },
  } as unknown as ConstructorParameters<typeof Streams>[0]
  const streams = new Streams(context)
  const join = (name: string, address = MINE): Subscriber => {
    const outbox = {
      answer: (...frames: Buffer[]) => {
        const text = Buffer.concat(frames).toString()
        log.push(`${name} ${/RateLimit|subscribed to \w+|MarketIsClosed|"m":\d/.exec(text)?.[0] ?? text}`)
      },
      deliver: () => undefined,
      sendConflated: () => undefined,
    }
    return new Subscriber({
      name,
      address,
      outbox,
      isOver: false,
      awaits: (bytes: number) => (log.push(`${name} awaits ${bytes}`), () => log.push(`${name} answered`)),
      expectAnswer: () => (log.push(`${name} expects`), () => log.push(`${name} arrived`)),
    } as never)
  }
  return { streams, started, world, timers, join, logged: () => log.splice(0) }
}

/** Upstream sends the first message of a stream, or refuses it. */
export function answer(stream: Stream | undefined, fields: object = { subscriptionId: 'id' }): void {
  stream?.asked(7)
  stream?.received(message(fields))
}
