import { isExplained } from '../explained.ts'
import { slackMs, type History, type Message, type Socket, type Tick } from '../history.ts'
import type { ProductPromise, Violation } from '../promise.ts'

/** A tick that upstream has sent is at the page by then. */
const PATIENCE_MS = 5000

/** A price that a page was told. */
interface Told {
  readonly at: number
  readonly epoch: number
  readonly quote: number
}

/** A stream that a page has asked for. */
interface Stream {
  readonly symbol: string
  readonly requestId: number
  readonly told: Told[]
}

/** Prices are those of upstream. */
export const ticksAreTrue: ProductPromise = {
  name: 'ticks-are-true',
  sentence:
    'A page gets every tick of each of its streams exactly once, in order and soon, for as long as its socket is open, and nothing that it has not asked for.',
  isTimed: true,
  check(history) {
    const ticks = Map.groupBy(history.ticks, ({ symbol }) => symbol)
    const all = history.sockets.map((socket) => ({ socket, ...readingOf(socket) }))
    return {
      judged: all.flatMap(({ streams }) => streams.flatMap(({ told }) => told.map(({ at }) => at))),
      violations: all.flatMap(({ socket, streams, foreign }) =>
        foreign
          .map(({ at, text }) => ({ at, seen: `${socket.user} got what they had not asked for: ${text}` }))
          .concat(streams.flatMap((stream) => untrue(history, socket, stream, ticks.get(stream.symbol) ?? []))),
      ),
    }
  },
}

/** The streams of a socket with what came in them, and messages that answer nothing which it has asked for. */
function readingOf({ sent, received }: Socket): { streams: Stream[]; foreign: Message[] } {
  const streams = new Map<number, Stream>()
  const known = new Map<number, unknown>()
  for (const { text } of sent) {
    const { req_id: id, passthrough, ticks, ticks_history: past } = JSON.parse(text) as Record<string, unknown>
    if (typeof id !== 'number') continue
    known.set(id, passthrough)
    const symbol = ticks ?? past
    if (typeof symbol === 'string') streams.set(id, { symbol, requestId: id, told: [] })
  }
  const foreign: Message[] = []
  for (const { at, text } of received) {
    const message = JSON.parse(text) as FeedMessage
    const { req_id: id, passthrough, tick, history } = message
    const stream = id === undefined ? undefined : streams.get(id)
    for (const { epoch, quote } of pricesIn(message)) stream?.told.push({ at, epoch, quote })
    const isPrice = tick !== undefined || history !== undefined
    const isOther = isPrice && (stream === undefined || (tick ?? stream).symbol !== stream.symbol)
    const isMarked = id !== undefined || passthrough !== undefined
    const isKnown = id !== undefined && JSON.stringify(passthrough) === JSON.stringify(known.get(id))
    if (isOther || (isMarked && !isKnown)) foreign.push({ at, text })
  }
  return { streams: [...streams.values()], foreign }
}

interface FeedMessage {
  readonly req_id?: number
  readonly passthrough?: unknown
  readonly tick?: { readonly symbol: string; readonly epoch: number; readonly quote: number }
  readonly history?: { readonly prices: readonly number[]; readonly times: readonly number[] }
}

function pricesIn({ tick, history }: FeedMessage): { epoch: number; quote: number }[] {
  if (tick !== undefined) return [{ epoch: tick.epoch, quote: tick.quote }]
  return history?.prices.map((quote, nth) => ({ quote, epoch: history.times[nth] ?? 0 })) ?? []
}

function untrue(
  history: History,
  socket: Socket,
  { symbol, requestId, told }: Stream,
  ticks: readonly Tick[],
): Violation[] {
  const [first] = told
  if (first === undefined) return []
  // Two ticks may be equal, so there may be several places where it can have begun.
  const starts = ticks.flatMap((tick, nth) => (isSame(tick, first) ? [nth] : []))
  const lengths = starts.map((start) => told.findIndex((each, nth) => !isSame(each, ticks[start + nth])))
  const fits = lengths.indexOf(-1)
  const name = `${socket.user}: the stream ${requestId} of ${symbol} on the ${socket.kind} socket by instance ${socket.instance}`
  if (fits === -1) {
    const wrong = told[Math.max(0, ...lengths)] ?? first
    return [{ at: wrong.at, seen: `${name} has ${wrong.quote} of ${wrong.epoch} where upstream had another tick` }]
  }
  const next = ticks[(starts[fits] ?? 0) + told.length]
  if (next === undefined || isSoon(history, socket, next, ticks.at(-1)?.at ?? 0)) return []
  return [{ at: next.at + PATIENCE_MS, seen: `${name} lacks ${next.quote} of ${next.epoch} and all later ticks` }]
}

const isSame = (one: Omit<Told, 'at'>, other: Omit<Told, 'at'> | undefined): boolean =>
  one.epoch === other?.epoch && one.quote === other.quote

/** Whether a tick may still come, or need not. */
function isSoon(
  history: History,
  { user, instance, closedAt = Infinity, isClosedByPage }: Socket,
  { at }: Tick,
  now: number,
): boolean {
  const dueAt = at + PATIENCE_MS + slackMs(history, at, now)
  if (dueAt > Math.min(now, closedAt) || isClosedByPage) return true
  return isExplained(history, { user, instance, kind: 'socket', at, until: dueAt, result: 'silent' })
}
