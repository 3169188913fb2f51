import { setTimeout as pause } from 'node:timers/promises'
import { deliver, PATTERNS, patterns, tick } from '../feed/delivery.ts'
import { loadPages, STORM_MS } from '../feed/page-load.ts'
import {
  BROWSERS,
  disperse,
  FAN_OUT,
  gather,
  RELAY,
  SHARED,
  startFeeds,
  type FeedContender,
  type FeedStage,
} from '../feed/stage.ts'
import { tablesOf, goalsOf, type Results } from '../feed/tables.ts'
import type { Report } from '../report.ts'
import type { Choice } from '../rest-load.ts'
import { rounds } from '../rounds.ts'

const ROUNDS = 5
const SHORT_ROUNDS = 2
const CROWDS = [10, 100, 1000, 10_000] as const
/** With fewer browsers most of the memory is garbage of their handshakes. */
const IDLE_BROWSERS = 5000
const WARM_UP = 200
/** Time for the garbage of handshakes to be collected. */
const SETTLE_MS = 1500

/** Measures market data for many browsers: shared by this server, and relayed socket by socket. */
export async function feed(choice: Choice): Promise<Report> {
  const { short = false } = choice
  const stage = await startFeeds(choice)
  const { contenders } = stage
  const memory = new Map<string, number>()
  const isMeasured = ({ name }: FeedContender): boolean => !short || name === SHARED
  for (const contender of contenders.filter(isMeasured)) {
    memory.set(contender.name, await kibPerBrowser(stage, contender))
  }
  // V8 compiles hot code in the first seconds, which is not what a day is like.
  // In a short run this server alone is warmed up, twice since it is short; nginx has nothing to compile.
  const warmedUp = short ? [...contenders, ...contenders].filter(isMeasured) : contenders
  for (const contender of warmedUp) await deliver(stage, contender, BROWSERS)
  const count = short ? SHORT_ROUNDS : ROUNDS
  const deliveries = await rounds(contenders, count, (contender) => deliver(stage, contender, BROWSERS))
  const crowds = short ? [] : await byCrowd(stage)
  const all = new Map<string, Results>()
  for (const contender of contenders) {
    const { name } = contender
    // The bare fan-out cuts long answers to pieces.
    const loads = isMeasured(contender) && name !== FAN_OUT
    const storm = loads ? await loadPages(stage, contender, BROWSERS) : undefined
    all.set(name, { deliveries: deliveries.get(name) ?? [], storm, kibPerBrowser: memory.get(name) ?? Number.NaN })
  }
  return {
    name: 'feed',
    title: `Market data for ${BROWSERS.toLocaleString('en')} browsers with the same five symbols`,
    tables: [
      ...tablesOf(all),
      {
        title: 'Messages that upstream writes for one tick, by the number of browsers',
        columns: ['', ...CROWDS.map((count) => count.toLocaleString('en'))],
        rows: [...crowds].map(([name, counts]) => [name].concat(counts)),
      },
    ],
    goals: goalsOf(all),
    notes: [
      `${count} rounds after a warm-up. ${patterns.map((pattern) => `${pattern}: ${PATTERNS[pattern].bursts} × ${PATTERNS[pattern].ticksPerBurst} every ${PATTERNS[pattern].everyMs} ms`).join('; ')}. The bench checks that each browser receives each message.`,
      'First ticks: the single ticks right after the handshakes, which take longer in every Node process. The goals are about those that follow.',
      `The delay is from upstream's first write of a tick until the last of ${BROWSERS} browsers has it. Upstream and browsers share the processors that the contender does not use.`,
      `Page load: all browsers connect within ${STORM_MS / 1000} s, and each asks for active_symbols (25 KB), contracts_for and a subscribed history of 100 ticks.`,
      `Memory: ${IDLE_BROWSERS.toLocaleString('en')} browsers with five subscriptions each and no ticks, without a forced garbage collection.`,
      `The ${FAN_OUT} writes the bytes of one upstream socket to every browser as they come. Nothing that shares through Node's sockets can take much less, since nearly all of its time is the kernel's.`,
      'With 10,000 browsers a relay needs 20,000 file descriptors, which is more than this process may have open.',
    ],
    raw: Object.fromEntries(all),
  }
}

/** The growth of resident memory by browsers that are subscribed and idle. */
async function kibPerBrowser(stage: FeedStage, contender: FeedContender): Promise<number> {
  const resident: number[] = []
  for (const count of [WARM_UP, IDLE_BROWSERS]) {
    if (count === IDLE_BROWSERS) resident.push(contender.program.rssBytes())
    await gather(stage, contender, count)
    await pause(SETTLE_MS)
    if (count === IDLE_BROWSERS) resident.push(contender.program.rssBytes())
    await disperse(stage, contender)
    await pause(SETTLE_MS)
  }
  const [before = Number.NaN, after = Number.NaN] = resident
  return (after - before) / IDLE_BROWSERS / 1024
}

/** Messages that upstream writes for one tick, by contender and number of browsers. */
async function byCrowd(stage: FeedStage): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>()
  for (const contender of stage.contenders.filter(({ name }) => [SHARED, RELAY].includes(name))) {
    const counts: string[] = []
    for (const count of CROWDS) {
      if (count === CROWDS.at(-1) && contender.name === RELAY) {
        counts.push('not measured')
        continue
      }
      await gather(stage, contender, count)
      await contender.market.order({ do: 'count' })
      const { count: ticks } = await tick(stage, contender, count, { ...PATTERNS['single ticks'], bursts: 5 })
      const { written } = await contender.market.order({ do: 'count' })
      counts.push((written / ticks).toLocaleString('en'))
      await disperse(stage, contender)
    }
    found.set(contender.name, counts)
  }
  return found
}
