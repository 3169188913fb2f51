import { THIS_SERVER } from '../contenders.ts'
import { closeRelays, handshakes, openRelays } from '../pumps.ts'
import { BARE_WS, startRelays, type RelayContender, type RelayStage } from '../relay-contenders.ts'
import { atMost, shown, tableOf, type Report } from '../report.ts'
import type { Choice } from '../rest-load.ts'
import { figuresOf, ratio, rounds, spread } from '../rounds.ts'

const ROUNDS = 3
const RELAYS = 8000
const PACE = { framesPerSecond: 4000, seconds: 6 }
const LIMIT_SECONDS = 60

/** Measures many relays in one process: how soon they are open, and how long a frame takes among them. */
export async function manyRelays(choice: Choice): Promise<Report> {
  const stage = await startRelays({ ...choice, short: true })
  const results = await rounds(stage.contenders, ROUNDS, (contender) => measure(stage, contender))
  const of = figuresOf(results)
  const opening = spread(of(THIS_SERVER, 'openSeconds'))
  return {
    name: 'many-relays',
    title: `${RELAYS.toLocaleString('en')} relays in one process`,
    tables: [
      tableOf('One frame to each in turn', [...results.keys()], {
        'all open after, s': (name) => shown(spread(of(name, 'openSeconds')), 1),
        'delay of a frame, p50 ms': (name) => shown(spread(of(name, 'p50Ms')), 2),
        'p99 ms': (name) => shown(spread(of(name, 'p99Ms')), 1),
        'CPU µs per frame': (name) => shown(spread(of(name, 'cpuMicros')), 1),
        [`${BARE_WS} = 1`]: (name) => shown(ratio(of(name, 'cpuMicros'), of(BARE_WS, 'cpuMicros'))),
        'resident memory, MiB': (name) => shown(spread(of(name, 'rssMib')), 0),
      }),
    ],
    goals: [
      atMost(LIMIT_SECONDS, `${RELAYS.toLocaleString('en')} relays are open within ${LIMIT_SECONDS} s`, opening, {
        unit: ' s',
        digits: 1,
      }),
    ],
    notes: [
      `${ROUNDS} rounds of ${PACE.seconds} s. Upstream sends ${PACE.framesPerSecond.toLocaleString('en')} frames of 290 bytes a second, to one relay after another. The bench checks that every relay is alive: all frames arrive.`,
    ],
    raw: results,
  }
}

async function measure(stage: RelayStage, { program, port, path, origin }: RelayContender) {
  const { browsers, upstream } = stage
  const startedAt = performance.now()
  await openRelays(stage, port, handshakes(RELAYS, path, origin))
  const openSeconds = (performance.now() - startedAt) / 1000
  await browsers.order({ do: 'receive', frames: 0 })
  const before = program.cpuMs()
  const sent = await upstream.order({ do: 'pump-timed', ...PACE })
  const received = await browsers.order({ do: 'receive', frames: sent })
  if (received !== sent) throw new Error(`${program.name}: ${received} of ${sent} frames arrived`)
  const cpuMicros = ((program.cpuMs() - before) * 1000) / sent
  const p50Ms = await browsers.order({ do: 'delay', share: 0.5 })
  const p99Ms = await browsers.order({ do: 'delay', share: 0.99 })
  const rssMib = program.rssBytes() / 1024 ** 2
  await closeRelays(stage)
  return { openSeconds, cpuMicros, p50Ms, p99Ms, rssMib }
}
