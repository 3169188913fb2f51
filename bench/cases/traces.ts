import { fileURLToPath } from 'node:url'
import { freePort } from '../../sandbox/listening.ts'
import { thisServer } from '../contenders.ts'
import { Program } from '../program.ts'
import { atMost, shown, shownMedian, tableOf, type Goal, type Report } from '../report.ts'
import {
  CONNECTIONS,
  measure,
  measureTogether,
  startServers,
  type Choice,
  type RestRound,
  type Running,
} from '../rest-load.ts'
import { figures, pairs, ratioToBase, spread } from '../rounds.ts'
import { listening } from '../world.ts'

const ROUNDS = 15
const SECONDS = 2
const WARM_UP_SECONDS = 4
/** With few spans it takes longer until V8 has compiled what sends them. */
const SAMPLED_WARM_UP_SECONDS = 40
const OFF = 'without traces'
const BEFORE = 'before'
const SAMPLED = '1 % of the requests'
/** The most that a GET may cost with traces, as a multiple of one without. */
const LIMITS = { 'all requests': 1.35, [SAMPLED]: 1.05 }
const WHY =
  'To make, serialize and send the two spans of a sampled request takes the packages of OpenTelemetry alone about 30 µs, a third of a GET. Any other request still has an id, the decision of a sampler, a longer log line, a header for upstream and a context that follows its promises: together a tenth of a GET.'

/** Measures a GET with and without traces. The collector is a process of its own, and not on the measured processor. */
export async function traces({ before }: Choice): Promise<Report> {
  const port = await freePort()
  const file = fileURLToPath(new URL('../bare/collector.ts', import.meta.url))
  const collector = new Program('collector', process.execPath, [file], { env: { PORT: String(port) }, on: 'others' })
  await listening(collector, port)
  const on = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` }
  const sampled = { ...on, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.01' }
  const { world, contenders } = await startServers([
    thisServer(OFF),
    ...(before === undefined ? [] : [thisServer(BEFORE, { root: before })]),
    thisServer('all requests', { settings: { ...on, OTEL_BSP_MAX_QUEUE_SIZE: '20000' } }),
    thisServer(SAMPLED, { settings: sampled }),
  ])
  for (const contender of contenders) {
    await measure(world, contender, contender.name === SAMPLED ? SAMPLED_WARM_UP_SECONDS : WARM_UP_SECONDS)
  }
  const [off, ...others] = contenders as [Running, ...Running[]]
  const paired = await pairs(off, others, ROUNDS, (two) => measureTogether(world, two, SECONDS))
  const of = (name: string, figure: keyof RestRound): number[] => figures(paired.get(name)?.other, figure)
  return {
    name: 'traces',
    title: 'A GET with traces',
    tables: [
      tableOf('An authenticated GET of 1.1 KB, proxied: two spans', [...paired.keys()], {
        'CPU µs per request': (name) => shown(spread(of(name, 'cpuMicrosPerRequest')), 1),
        [`${OFF} = 1`]: (name) => shown(ratioToBase(paired.get(name), 'cpuMicrosPerRequest')),
        'RSS MiB': (name) => shownMedian(of(name, 'rssMib'), 0),
      }),
    ],
    goals: Object.entries(LIMITS).map(([name, most]): Goal =>
      atMost(
        most,
        `a GET with traces of ${name} costs at most ${most} × one without`,
        ratioToBase(paired.get(name), 'cpuMicrosPerRequest'),
        { why: WHY },
      ),
    ),
    notes: [
      `${ROUNDS} rounds of ${SECONDS} s for each, in which it shares a processor with a server ${OFF}, after a warm-up of ${WARM_UP_SECONDS} s (${SAMPLED}: ${SAMPLED_WARM_UP_SECONDS} s); wrk with ${CONNECTIONS} connections to each.`,
    ],
    raw: paired,
  }
}
