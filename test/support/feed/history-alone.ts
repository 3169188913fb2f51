import type { Test } from 'tap'
import { HistoryDelivery } from '../../../src/sockets/feed/streams/history-delivery.ts'
import { CacheQuota } from '../../../src/sockets/feed/streams/shared-answer.ts'
import type { StreamContext } from '../../../src/sockets/feed/streams/stream.ts'
import type { Subscription } from '../../../src/sockets/feed/streams/subscription.ts'
import type { FeedRequest, UpstreamMessage } from '../../../src/sockets/feed/wire/index.ts'
import { parseRequest } from '../../../src/sockets/feed/wire/parse-request.ts'
import type { Listener, WriteRequest } from '../../../src/sockets/feed/upstream/index.ts'
import { ManualTimers } from '../time/manual-timers.ts'
import { replace } from '../time/replace.ts'

/** A request for so many ticks up to now, and those that follow. */
export function requestOf(count: number, more: object = {}): FeedRequest {
  const members = { ticks_history: 'A', count, end: 'latest', subscribe: 1, ...more }
  const request = parseRequest(Buffer.from(JSON.stringify(members)))
  if (request === undefined) throw new Error('the feed does not know this request')
  return request
}

const messageOf = (body: object, part: string, errorCode?: string): UpstreamMessage =>
  ({
    body: Buffer.from(JSON.stringify(body).slice(1)),
    subscription: Buffer.from(part),
    errorCode,
  }) as unknown as UpstreamMessage

export const tick = (epoch: number): UpstreamMessage => messageOf({ t: epoch, tick: { epoch, quote: epoch } }, 's;')
export const history = (...times: number[]): UpstreamMessage =>
  messageOf({ h: times, history: { times, prices: times } }, 'first;')
export const refusal = (): UpstreamMessage => messageOf({ error: 1 }, '', 'Refused')

/** A frame without its header and what browsers alone are told, up to the part that tells what it is. */
const shown = (...frames: readonly Buffer[]): string =>
  /"(?:t":\d+|h":\[.*?\]|error":1|RateLimit)/.exec(Buffer.concat(frames).toString())?.[0].replaceAll('"', '') ??
  'unknown'

/** A history with its stream, and the browsers that have it. */
export function historyAlone(t: Test, cacheMs = 5000) {
  const timers = new ManualTimers(t)
  const world = { now: 1000, admits: true, log: [] as string[] }
  replace(t, performance, 'now', () => world.now)
  const log = (...entry: unknown[]): void => void world.log.push(entry.join(' '))
  const asked: { readonly text: string; readonly listener: Listener }[] = []
  const context = {
    oneShots: {
      ask: (write: WriteRequest, listener: Listener) => asked.push({ text: String(write(7)), listener }),
      outage: { depart: (browser: { name: string }) => log(browser.name, 'departs') },
      connection: { release: () => undefined },
    },
    fairShare: { admits: () => world.admits, refused: () => log('refused') },
    feedMetrics: { hit: (operation: string) => log('hit', operation) },
    kept: new CacheQuota(),
    limits: { cacheMs },
  } as unknown as StreamContext
  const first = requestOf(1)
  const spec = { identity: 'A', type: 'ticks', symbol: 'A', startedBy: 'network' } as const
  const delivery = new HistoryDelivery(spec, first, context)
  const browse = (name: string, request: FeedRequest = first): Subscription => {
    const outbox = {
      deliver: (frame: Buffer, identity: string) => log(name, shown(frame), identity),
      answer: (...frames: Buffer[]) => log(name, 'answer', shown(...frames)),
    }
    const subscription = {
      browser: { name, outbox, isOver: false, end: () => log(name, 'too big') },
      prefix: Buffer.from(`{"${name}":1,`),
      identity: 'A',
      stream: { leave: (each: Subscription) => (log(name, 'leaves'), delivery.leave(each)) },
      served: () => log(name, 'served'),
      fail: (frame: Buffer) => log(name, 'fails', shown(frame)),
    } as unknown as Subscription
    delivery.join(subscription, request)
    return subscription
  }
  /** Upstream answers the request that has waited longest for that. */
  const answer = (message: UpstreamMessage): void => asked.shift()?.listener.received(message)
  const logged = (): string[] => world.log.splice(0)
  return { delivery, world, timers, asked, browse, answer, logged }
}
