import { tick, type Pace } from '../feed/delivery.ts'
import { BROWSERS, disperse, FAN_OUT, gather, RELAY, SHARED, startFeeds, type FeedContender } from '../feed/stage.ts'
import { symbolAt } from '../load/market.ts'
import { BARE_WS } from '../relay-contenders.ts'
import { atMost, shown, shownMedian, tableOf, type Report } from '../report.ts'
import type { Choice } from '../rest-load.ts'
import { figuresOf, quantile, ratio, rounds, spread } from '../rounds.ts'

const ROUNDS = 3
const TICKS_OF_EACH = 10
/** Half the rate of the case `feed`, as upstream frames every message by itself. */
const EVERY_MS = 100
/** Parts of the symbols that tick at the same moment, if not all do. */
const PARTS = 10
/** Why the goal is missed in some runs. */
const WHY = 'Only three rounds are measured, so one slow phase of the machine decides: other runs had 0.83 to 0.95.'
const LIMIT = 1.5
/** How many symbols the browsers share; each browser wants one. */
const COUNTS = [100, BROWSERS] as const

/** Measures market data for browsers of which each wants something else. */
export async function streams({ before }: Choice): Promise<Report> {
  const stage = await startFeeds(before === undefined ? {} : { before })
  // The bare fan-out writes everything to everybody, and this server's relay does the same whatever browsers want.
  const contenders = stage.contenders.filter(({ name }) => name !== FAN_OUT && name !== RELAY)
  const kinds = COUNTS.flatMap((symbols) =>
    contenders.map((contender) => ({ name: nameOf(symbols, contender.name), symbols, contender })),
  )
  const measure = async ({ symbols, contender }: (typeof kinds)[number]) => {
    const { market, program } = contender
    const wanted = Array.from({ length: symbols }, (_, index) => [`{"ticks":"${symbolAt(index)}","subscribe":1}`])
    await gather(stage, contender, BROWSERS, wanted)
    const delivered = async (pace: Pace): Promise<{ micros: number; delays: readonly number[] }> => {
      const cpuBefore = program.cpuMs()
      const { count, delays } = await tick(stage, contender, BROWSERS / symbols, { ...pace, symbols })
      const messages = (count * BROWSERS) / symbols
      return { micros: ((program.cpuMs() - cpuBefore) * 1000) / messages, delays }
    }
    const all = { ticksPerBurst: symbols, bursts: TICKS_OF_EACH, everyMs: EVERY_MS, isOneWrite: false }
    // The first ticks after thousands of handshakes take longer in every Node process.
    await delivered(all)
    const together = await delivered(all)
    const inParts = { ticksPerBurst: symbols / PARTS, bursts: TICKS_OF_EACH * PARTS, everyMs: EVERY_MS / PARTS }
    const spreadOut = await delivered({ ...all, ...inParts })
    const { sockets } = await market.order({ do: 'count' })
    await disperse(stage, contender)
    return { together: together.micros, spreadOut: spreadOut.micros, p99Ms: quantile(together.delays, 0.99), sockets }
  }
  const results = await rounds(kinds, ROUNDS, measure)
  const of = figuresOf(results)
  const toBare = (symbols: number, name: string, figure: 'together' | 'spreadOut') =>
    ratio(of(nameOf(symbols, name), figure), of(nameOf(symbols, BARE_WS), figure))
  const tables = COUNTS.map((symbols) =>
    tableOf(
      titleOf(symbols),
      contenders.map(({ name }: FeedContender) => name),
      {
        'CPU µs per message': (name) => shown(spread(of(nameOf(symbols, name), 'together')), 1),
        [`${BARE_WS} = 1`]: (name) => shown(toBare(symbols, name, 'together')),
        'spread out, CPU µs': (name) => shown(spread(of(nameOf(symbols, name), 'spreadOut')), 1),
        [`spread out, ${BARE_WS} = 1`]: (name) => shown(toBare(symbols, name, 'spreadOut')),
        'delay to the last browser, p99 ms': (name) => shownMedian(of(nameOf(symbols, name), 'p99Ms'), 1),
        'upstream sockets': (name) => shownMedian(of(nameOf(symbols, name), 'sockets'), 0),
      },
    ),
  )
  return {
    name: 'streams',
    title: `Market data for ${BROWSERS.toLocaleString('en')} browsers with different symbols`,
    tables,
    goals: COUNTS.map((symbols) => {
      const goal = `CPU time per message, ${titleOf(symbols)}: ≤ ${LIMIT} × a ${BARE_WS}`
      return atMost(LIMIT, goal, toBare(symbols, SHARED, 'together'), { why: WHY })
    }),
    notes: [
      `${ROUNDS} rounds. Every symbol ticks ${TICKS_OF_EACH} times, all of them together every ${EVERY_MS} ms; spread out, a tenth of them every ${EVERY_MS / PARTS} ms. Upstream writes each tick by itself. The bench checks that all messages arrive.`,
    ],
    raw: results,
  }
}

function titleOf(symbols: number): string {
  const each = BROWSERS / symbols
  return `${symbols.toLocaleString('en')} symbols, ${each === 1 ? 'one browser' : `${each} browsers`} each`
}

function nameOf(symbols: number, name: string): string {
  return `${symbols}, ${name}`
}
