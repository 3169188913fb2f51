import { disperse, gather, type FeedContender, type FeedStage } from './stage.ts'

/** How ticks arrive: one by one, or as bursts that upstream writes at once or tick by tick. */
export const PATTERNS = {
  'single ticks': { ticksPerBurst: 1, bursts: 25, everyMs: 50, isOneWrite: true },
  'bursts that arrive together': { ticksPerBurst: 10, bursts: 4, everyMs: 300, isOneWrite: true },
  'bursts written tick by tick': { ticksPerBurst: 10, bursts: 4, everyMs: 300, isOneWrite: false },
} as const

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

/** Measures a round of all patterns. @throws Error if a browser misses a message */
export async function deliver(stage: FeedStage, contender: FeedContender, browsers: number): Promise<Delivery> {
  const { crowd } = stage
  const { market } = contender
  await gather(stage, contender, browsers)
  const micros: Partial<Record<Pattern, number>> = {}
  let delays: number[] = []
  await market.order({ do: 'count' })
  let ticks = 0
  for (const pattern of patterns) {
    await crowd.order({ do: 'reset' })
    const before = contender.program.cpuMs()
    const { sentAt, count } = await market.order({ do: 'tick', ...PATTERNS[pattern] })
    const wanted = count * browsers
    const { count: received, arrivedAt } = await crowd.order({ do: 'receive', messages: wanted })
    if (received !== wanted) throw new Error(`${contender.name}: ${received} of ${wanted} messages arrived`)
    micros[pattern] = ((contender.program.cpuMs() - before) * 1000) / wanted
    if (pattern === 'single ticks') delays = arrivedAt.map((at, index) => at - (sentAt[index] ?? Number.NaN))
    ticks += count
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
