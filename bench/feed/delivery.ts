import type { MarketOrder } from '../load/market.ts'
import { disperse, gather, type FeedContender, type FeedStage } from './stage.ts'

/** How upstream sends ticks. */
export type Pace = Omit<Extract<MarketOrder, { readonly do: 'tick' }>, 'do'>

const SINGLE: Pace = { ticksPerBurst: 1, bursts: 30, everyMs: 50, isOneWrite: true }
const BURSTS: Pace = { ticksPerBurst: 10, bursts: 4, everyMs: 300, isOneWrite: true }

/**
 * How ticks arrive: one by one, or as bursts that upstream writes at once or tick by tick. The first ones after thousands of
 * handshakes take longer in every Node process, so they are measured by themselves.
 */
export const PATTERNS = {
  'first ticks': SINGLE,
  'single ticks': SINGLE,
  'bursts that arrive together': BURSTS,
  'bursts written tick by tick': { ...BURSTS, isOneWrite: false },
} as const satisfies Record<string, Pace>

export type Pattern = keyof typeof PATTERNS
export const patterns = Object.keys(PATTERNS) as Pattern[]

/** The figures of a contender in one round. */
export interface Delivery {
  /** CPU µs per delivered message. */
  readonly micros: Readonly<Record<Pattern, number>>
  /** From the start of upstream's write of a single tick until the last browser has it, in ms. */
  readonly delays: readonly number[]
  readonly upstreamSockets: number
  /** Messages that upstream wrote for one tick of a symbol. */
  readonly upstreamMessagesPerTick: number
}

/** Measures a round of all patterns. @throws Error like {@link tick} */
export async function deliver(stage: FeedStage, contender: FeedContender, browsers: number): Promise<Delivery> {
  const { market } = contender
  await gather(stage, contender, browsers)
  const micros: Partial<Record<Pattern, number>> = {}
  let delays: readonly number[] = []
  await market.order({ do: 'count' })
  let ticks = 0
  for (const pattern of patterns) {
    const before = contender.program.cpuMs()
    const ticked = await tick(stage, contender, browsers, PATTERNS[pattern])
    micros[pattern] = ((contender.program.cpuMs() - before) * 1000) / (ticked.count * browsers)
    if (pattern === 'single ticks') delays = ticked.delays
    ticks += ticked.count
  }
  const { written, sockets } = await market.order({ do: 'count' })
  await disperse(stage, contender)
  return {
    micros: micros as Record<Pattern, number>,
    delays,
    upstreamSockets: sockets,
    upstreamMessagesPerTick: written / ticks,
  }
}

/**
 * Lets upstream send ticks.
 * @param browsers how many get each tick
 * @returns how many, and the delay of each burst to the last browser in ms
 * @throws Error if a browser misses a message
 */
export async function tick(
  { crowd }: FeedStage,
  { name, market }: FeedContender,
  browsers: number,
  pace: Pace,
): Promise<{ readonly count: number; readonly delays: readonly number[] }> {
  await crowd.order({ do: 'reset' })
  const { sentAt, count } = await market.order({ do: 'tick', ...pace })
  const wanted = count * browsers
  const { count: received, arrivedAt } = await crowd.order({ do: 'receive', messages: wanted })
  if (received !== wanted) throw new Error(`${name}: ${received} of ${wanted} messages arrived`)
  return { count, delays: arrivedAt.map((at, index) => at - (sentAt[index] ?? Number.NaN)) }
}
