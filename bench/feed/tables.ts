import { NGINX } from '../relay-contenders.ts'
import { atMost, shown, type Goal, type Table } from '../report.ts'
import { quantile, ratio, spread, type Spread } from '../rounds.ts'
import { patterns, type Delivery, type Pattern } from './delivery.ts'
import { STORM_MS, type PageLoad } from './page-load.ts'
import { BROWSERS, RELAY, SHARED } from './stage.ts'

/** The most CPU time per delivered message, compared with nginx. */
const LIMITS: Readonly<Partial<Record<Pattern, number>>> = {
  'single ticks': 0.75,
  'bursts that arrive together': 1,
  'bursts written tick by tick': 0.25,
}
const RELAY_LIMIT = 0.4
const WHY =
  'Two thirds of the time or more is that of one write to each browser, most of it in the kernel: it is all that the bare fan-out does; the rest is to see whether each browser reads in time, and to count.'
const MEMORY_LIMIT_KIB = 18
const REQUESTS_LIMIT = 20

/** The results of one contender. */
export interface Results {
  readonly deliveries: readonly Delivery[]
  readonly storm: PageLoad | undefined
  readonly kibPerBrowser: number
}

/** The results of all contenders by name. */
type All = ReadonlyMap<string, Results>

/** The tables of all contenders. */
export function tablesOf(all: All): Table[] {
  return [
    cpuTable('CPU time per delivered message, nginx = 1', all, (own, pattern) =>
      shown(ratio(micros(own, pattern), micros(all.get(NGINX), pattern))),
    ),
    cpuTable('CPU µs per delivered message', all, (own, pattern) => shown(spread(micros(own, pattern)), 1)),
    otherTable(all),
    stormTable(all),
  ]
}

/** The goals, as far as all contenders that they compare were measured. */
export function goalsOf(all: All): Goal[] {
  const [own, relay, nginx] = [SHARED, RELAY, NGINX].map((name) => all.get(name))
  if (own === undefined) return []
  const compared = (other: Results, pattern: Pattern): Spread => ratio(micros(own, pattern), micros(other, pattern))
  const single = 'single ticks'
  return [
    ...(nginx === undefined
      ? []
      : patterns.flatMap((pattern) => {
          const limit = LIMITS[pattern]
          return limit === undefined ? [] : [goal(limit, title(pattern), compared(nginx, pattern), ' × nginx', WHY)]
        })),
    ...(relay === undefined
      ? []
      : [goal(RELAY_LIMIT, title(single), compared(relay, single), ' × our own relay', WHY)]),
    goal(1, 'Upstream sockets that stream:', own.deliveries[0]?.upstreamSockets ?? Number.NaN, ''),
    goal(MEMORY_LIMIT_KIB, 'Resident memory:', own.kibPerBrowser, ' KiB per browser'),
    ...(nginx === undefined ? [] : [goal(1, 'Delay to the last browser, p99:', p99(own) / p99(nginx), ' × nginx')]),
    goal(REQUESTS_LIMIT, 'Page load, requests to upstream:', own.storm?.upstreamRequests ?? Number.NaN, ''),
    goal(0, 'Page load, browsers not served:', own.storm?.unserved ?? Number.NaN, ''),
  ]
}

/** What a goal for CPU time is about. */
function title(pattern: Pattern): string {
  return `CPU time per delivered message, ${pattern}:`
}

function micros(results: Results | undefined, pattern: Pattern): number[] {
  return results?.deliveries.map((delivery) => delivery.micros[pattern]) ?? []
}

function cpuTable(title: string, all: All, cell: (own: Results, pattern: Pattern) => string): Table {
  const rows = [...all].map(([name, own]) => [name].concat(patterns.map((pattern) => cell(own, pattern))))
  return { title, columns: ['', ...patterns], rows }
}

function otherTable(all: All): Table {
  const rows = [...all].map(([name, { deliveries, kibPerBrowser }]) => [
    name,
    String(deliveries[0]?.upstreamSockets),
    kibPerBrowser.toFixed(1),
    quantile(delays(deliveries), 0.5).toFixed(1),
    quantile(delays(deliveries), 0.99).toFixed(1),
  ])
  const columns = ['', 'upstream sockets', 'KiB per browser', 'delay to the last browser, p50 ms', 'p99 ms']
  return { title: 'Sockets, memory and delay', columns, rows }
}

function stormTable(all: All): Table {
  const rows = [...all].flatMap(([name, { storm }]) => (storm === undefined ? [] : [stormRow(name, storm)]))
  const columns = ['', 'requests to upstream', 'upstream sockets', 's until the last has everything', 'not served']
  return { title: `Page load: ${BROWSERS.toLocaleString('en')} browsers within ${STORM_MS / 1000} s`, columns, rows }
}

function stormRow(name: string, storm: PageLoad): string[] {
  return [
    name,
    storm.upstreamRequests.toLocaleString('en'),
    storm.upstreamSockets.toLocaleString('en'),
    storm.seconds.toFixed(2),
    String(storm.unserved),
  ]
}

function p99({ deliveries }: Results): number {
  return quantile(delays(deliveries), 0.99)
}

function delays(deliveries: readonly Delivery[]): number[] {
  return deliveries.flatMap((delivery) => delivery.delays)
}

/** The goal of a figure, whose limit and unit follow its title. */
function goal(limit: number, title: string, figure: Spread | number, unit: string, why?: string): Goal {
  return atMost(limit, `${title} ≤ ${limit}${unit}`, figure, { unit, why })
}
