import { THIS_SERVER } from '../contenders.ts'
import { closeRelays, handshakes, openRelays } from '../pumps.ts'
import { BARE_WS, startRelays, type RelayContender, type RelayStage } from '../relay-contenders.ts'
import { atMost, shown, tableOf, type Report, type Table } from '../report.ts'
import type { Choice } from '../rest-load.ts'
import { figuresOf, ratio, rounds, spread, type Spread } from '../rounds.ts'

const ROUNDS = 9
const SHORT_ROUNDS = 7
/** Of each pattern in a short run. */
const SHORT_SECONDS = 0.5
const SOCKETS = 50

const SINGLE = { framesPerWrite: 1, framesPerSecond: 20_000, seconds: 1 }
const BURST = { framesPerWrite: 20, framesPerSecond: 60_000, seconds: 1 }

/**
 * How frames are sent: single ones, as ticks arrive, or many in one write, as in a snapshot or a busy market. The limit is
 * the most CPU time, as a multiple of the bare relay's.
 */
const PATTERNS = {
  'single to browser': { from: 'upstream', pace: SINGLE, limit: 1 },
  'burst to browser': { from: 'upstream', pace: BURST, limit: 1 },
  'single to upstream': { from: 'browsers', pace: SINGLE, limit: 1 },
  'burst to upstream': { from: 'browsers', pace: BURST, limit: 1.2 },
} as const

const WHY =
  'A frame that arrives alone bears the whole cost of limits, counters and the check for backpressure, which the bare relay does not have.'

type Pattern = keyof typeof PATTERNS
/** CPU µs per frame by pattern. */
type RelayRound = Record<Pattern, number>

const patterns = Object.keys(PATTERNS) as Pattern[]

/** Measures the CPU time of a relayed frame of 290 bytes. */
export async function relay(choice: Choice): Promise<Report> {
  const stage = await startRelays(choice)
  const [count, more] = choice.short === true ? [SHORT_ROUNDS, { seconds: SHORT_SECONDS }] : [ROUNDS, {}]
  for (const contender of stage.contenders) await measure(stage, contender, more)
  const results = await rounds(stage.contenders, count, (contender) => measure(stage, contender, more))
  const of = figuresOf(results)
  const table = (title: string, cell: (name: string, pattern: Pattern) => string): Table =>
    tableOf(
      title,
      [...results.keys()],
      Object.fromEntries(patterns.map((pattern) => [pattern, (name: string) => cell(name, pattern)])),
    )
  const toBare = (name: string, pattern: Pattern): Spread => ratio(of(name, pattern), of(BARE_WS, pattern))
  return {
    name: 'relay',
    title: 'A relayed WebSocket frame of 290 bytes',
    tables: [
      table('CPU time per frame, bare ws-to-ws relay = 1', (name, pattern) => shown(toBare(name, pattern))),
      table('CPU µs per frame', (name, pattern) => shown(spread(of(name, pattern)), 1)),
    ],
    goals: patterns.map((pattern) => {
      const { limit } = PATTERNS[pattern]
      const goal = `CPU time per frame, ${pattern}: ≤ ${limit.toFixed(1)} × a bare ws-to-ws relay`
      return atMost(limit, goal, toBare(THIS_SERVER, pattern), { why: pattern.startsWith('single') ? WHY : undefined })
    }),
    notes: [
      `${SOCKETS} relays, ${count} rounds of 1 s for each pattern. Single: 20,000 frames/s, each in its own write. Burst: 60,000 frames/s, 20 in each write.`,
      'Both ends are raw sockets that write prepared frames and count bytes. The bench checks that every frame arrives.',
    ],
    raw: results,
  }
}

async function measure(
  stage: RelayStage,
  { program, port, path, origin }: RelayContender,
  more: { readonly seconds?: number },
): Promise<RelayRound> {
  const { browsers, upstream } = stage
  await openRelays(stage, port, handshakes(SOCKETS, path, origin))
  const round: Partial<RelayRound> = {}
  for (const pattern of patterns) {
    const { from, pace } = PATTERNS[pattern]
    const [sender, receiver] = from === 'upstream' ? [upstream, browsers] : [browsers, upstream]
    await receiver.order({ do: 'receive', frames: 0 })
    const before = program.cpuMs()
    const sent = await sender.order({ do: 'pump', ...pace, ...more })
    const received = await receiver.order({ do: 'receive', frames: sent })
    if (received !== sent) throw new Error(`${program.name}: ${received} of ${sent} frames arrived`)
    round[pattern] = ((program.cpuMs() - before) * 1000) / sent
  }
  await closeRelays(stage)
  return round as RelayRound
}
