import type { Test } from 'tap'
import { CLOSE } from '../../../src/sockets/close-codes.ts'
import { Stream, type Delivery, type StreamContext } from '../../../src/sockets/feed/streams/stream.ts'
import type { Subscription } from '../../../src/sockets/feed/streams/subscription.ts'
import type { FeedRequest, UpstreamMessage } from '../../../src/sockets/feed/wire/index.ts'
import { ManualTimers } from '../time/manual-timers.ts'
import { replace } from '../time/replace.ts'

export const LINGER = 300
export const SPREAD = 5000
export const SPEC = { identity: 'A', type: 'ticks', symbol: 'A', startedBy: 'network' } as const
const REQUEST = { memoryBytes: 1 } as FeedRequest

export const message = (fields: object = {}): UpstreamMessage =>
  ({ body: Buffer.from('body'), subscription: Buffer.from('part,'), ...fields }) as unknown as UpstreamMessage
export const refusal = (errorCode: string): UpstreamMessage => message({ errorCode })

/** A stream on a link, and all that it tells the others. */
export function streamAlone(t: Test, canReplace = false) {
  const timers = new ManualTimers(t)
  const world = { now: 1000, log: [] as unknown[], places: true, isReplaced: true, isOvertaken: true, detached: 9 }
  replace(t, performance, 'now', () => world.now)
  const log = (...entry: unknown[]): void => void world.log.push(entry.join(' '))
  const linkOf = (name: string) =>
    ({
      add: (each: unknown) => log(name, 'add', each === stream),
      leave: (each: unknown) => log(name, 'leave', each === stream),
      forget: (reqId: number, id: unknown) => log(name, 'forget', reqId, id),
      answered: (each: unknown) => log(name, 'answered', each === stream),
      refused: (each: unknown) => log(name, 'refused', each === stream),
      awaited: () => log(name, 'awaited'),
      outage: { depart: (browser: unknown) => log(name, 'depart', (browser as { name: string }).name) },
    }) as never
  const context = {
    fairShare: { refused: () => log('fair share') },
    feedMetrics: { refused: { inc: () => log('counted') } },
    log: { warn: (_: unknown, text: string) => log('warn', text) },
    pool: {
      place: (each: unknown, from: unknown) => {
        log('place', each === stream, from === link)
        return world.places
      },
    },
    limits: { cacheMs: 1, lingerMs: LINGER, maxSubscriptions: 9, reconnectSpreadMs: SPREAD },
    ended: (each: unknown) => log('ended', each === stream),
    marketClosed: (spec: unknown, { errorCode }: UpstreamMessage) => log('closed', spec === SPEC, errorCode),
  } as unknown as StreamContext
  const joined = new Set<Subscription>()
  const delivery: Delivery = {
    write: (reqId) => `request ${reqId}`,
    join: (each, request) => {
      joined.add(each)
      log('join', request === REQUEST)
    },
    leave: (each) => log('left', joined.delete(each)),
    take: ({ body }, isFirst) => log('take', body.toString(), isFirst),
    detach: (isOfRequest) => {
      log('detach', isOfRequest)
      const all = [...joined].slice(0, world.detached)
      for (const each of all) joined.delete(each)
      return all
    },
    ...(canReplace && { replace: () => world.isReplaced, overtake: () => world.isOvertaken }),
  }
  const stream = new Stream(SPEC, context, delivery)
  const link = linkOf('link')
  stream.link = link
  const browse = (name = 'browser'): Subscription => {
    const browser = { name, end: (close: unknown) => log(name, 'end', close === CLOSE.tooBig) }
    const each = {
      isAttached: true,
      browser,
      prefix: Buffer.from('prefix,'),
      fail: (frame: Buffer) => {
        log(name, 'fail', frame.subarray(2).toString())
        stream.leave(each)
      },
    } as unknown as Subscription
    stream.join(each, REQUEST)
    return each
  }
  const logged = (): unknown[] => world.log.splice(0)
  /** Upstream sends the stream, which one browser has. */
  const live = (): Subscription => {
    const each = browse()
    stream.asked(7)
    stream.received(message({ subscriptionId: 'id' }))
    logged()
    return each
  }
  return { stream, link, linkOf, timers, world, browse, live, logged }
}
