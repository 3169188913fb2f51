import { THIS_SERVER } from '../contenders.ts'
import { closeRelays, handshakes, openRelays } from '../pumps.ts'
import { BARE_WS, startRelays, type RelayContender, type RelayStage } from '../relay-contenders.ts'
import { shown, type Goal, type Report, type Table } from '../report.ts'
import type { Choice } from '../rest-load.ts'
import { ratio, rounds, spread } from '../rounds.ts'

const ROUNDS = 9
const SOCKETS = 50

/** How frames are sent: single ones, as ticks arrive, or many in one write, as in a snapshot or a busy market. */
const PATTERNS = {
  'single to browser': { from: 'upstream', framesPerWrite: 1, framesPerSecond: 20_000, seconds: 1 },
  'burst to browser': { from: 'upstream', framesPerWrite: 20, framesPerSecond: 60_000, seconds: 1 },
  'single to upstream': { from: 'browsers', framesPerWrite: 1, framesPerSecond: 20_000, seconds: 1 },
  'burst to upstream': { from: 'browsers', framesPerWrite: 20, framesPerSecond: 60_000, seconds: 1 },
} as const

type Pattern = keyof typeof PATTERNS
/** CPU µs per frame by pattern. */
type RelayRound = Record<Pattern, number>

const LIMITS: Readonly<Record<Pattern, number | undefined>> = {
  'single to browser': 1,
  'burst to browser': 1,
  'single to upstream': 1.2,
  'burst to upstream': 1.2,
}

const patterns = Object.keys(PATTERNS) as Pattern[]

/** Measures the CPU time of a relayed frame of 290 bytes. */
export async function relay(choice: Choice): Promise<Report> {
  const stage = await startRelays(choice)
  for (const contender of stage.contenders) await measure(stage, contender)
  const results = await rounds(stage.contenders, ROUNDS, (contender) => measure(stage, contender))
  const names = stage.contenders.map(({ name }) => name)
  const of = (name: string, pattern: Pattern): number[] => results.get(name)?.map((round) => round[pattern]) ?? []
  return {
    name: 'relay',
    title: 'A relayed WebSocket frame of 290 bytes',
    tables: [
      table('CPU time per frame, bare ws-to-ws relay = 1', names, (name, pattern) =>
        shown(ratio(of(name, pattern), of(BARE_WS, pattern))),
      ),
      table('CPU µs per frame', names, (name, pattern) => shown(spread(of(name, pattern)), 1)),
    ],
    goals: patterns.flatMap((pattern) => goal(pattern, of)),
    notes: [
      `${SOCKETS} relays, ${ROUNDS} rounds of 1 s for each pattern. Single: 20,000 frames/s, each in its own write. Burst: 60,000 frames/s, 20 in each write.`,
      'Both ends are raw sockets that write prepared frames and count bytes. The bench checks that every frame arrives.',
    ],
    raw: Object.fromEntries(results),
  }
}

async function measure(stage: RelayStage, { program, port, path, origin }: RelayContender): Promise<RelayRound> {
  const { browsers, upstream } = stage
  await openRelays(stage, port, handshakes(SOCKETS, path, origin))
  const round: Partial<RelayRound> = {}
  for (const pattern of patterns) {
    const { from, ...pace } = PATTERNS[pattern]
    const [sender, receiver] = from === 'upstream' ? [upstream, browsers] : [browsers, upstream]
    await receiver.order({ do: 'receive', frames: 0 })
    const before = program.cpuMs()
    const sent = await sender.order({ do: 'pump', ...pace })
    const received = await receiver.order({ do: 'receive', frames: sent })
    if (received !== sent) throw new Error(`${program.name}: ${received} of ${sent} frames arrived`)
    round[pattern] = ((program.cpuMs() - before) * 1000) / sent
  }
  await closeRelays(stage)
  return round as RelayRound
}

function table(title: string, names: readonly string[], cell: (name: string, pattern: Pattern) => string): Table {
  return {
    title,
    columns: ['', ...patterns],
    rows: names.map((name) => [name, ...patterns.map((pattern) => cell(name, pattern))]),
  }
}

function goal(pattern: Pattern, of: (name: string, pattern: Pattern) => number[]): Goal[] {
  const limit = LIMITS[pattern]
  if (limit === undefined) return []
  const toBare = ratio(of(THIS_SERVER, pattern), of(BARE_WS, pattern))
  return [
    {
      goal: `CPU time per frame, ${pattern}: ≤ ${limit.toFixed(1)} × a bare ws-to-ws relay`,
      measured: `${shown(toBare)} ×`,
      isMet: toBare.median <= limit,
    },
  ]
}
