import type { Paced } from './paced.ts'
import { atMost, type Goal } from './report.ts'
import { figuresOf, quantile, spread } from './rounds.ts'

/** The rounds of each contender. */
type Results = ReadonlyMap<string, readonly Paced[]>

/** The most that the p99 and the p99.9 of all requests may be, as a multiple of the bare proxy's. */
const LIMIT = 1.5
/** The most that the p99 of the worst round may be, as a multiple of that of the bare proxy. */
const WORST_LIMIT = 2
/** If the bare proxy has a round with a higher p99, the machine was busy, and the worst round says nothing. */
export const CALM_MS = 15

/** @returns a function that returns a quantile of all requests to a contender, whatever their round, in ms */
export function pooledOf(results: Results): (name: string, share: number) => number {
  const of = figuresOf(results)
  return (name, share) => quantile(of(name, 'times').flat(), share)
}

/** The goals for the latencies of this server beside those of the bare proxy. @param load what the goals call the load */
export function latencyGoals(results: Results, own: string, bare: string, load: string, why?: string): Goal[] {
  const of = figuresOf(results)
  const pooled = pooledOf(results)
  const toBare = (share: number): number => pooled(own, share) / pooled(bare, share)
  const worst = spread(of(bare, 'p99')).max
  const toWorst = spread(of(own, 'p99')).max / worst
  const text = { why }
  return [
    atMost(LIMIT, `p99 ${load}, all requests: ≤ ${LIMIT} × ${bare}`, toBare(0.99), text),
    atMost(LIMIT, `p99.9 ${load}, all requests: ≤ ${LIMIT} × ${bare}`, toBare(0.999), text),
    ...(worst > CALM_MS
      ? []
      : [atMost(WORST_LIMIT, `p99 ${load}, worst round: ≤ ${WORST_LIMIT} × that of ${bare}`, toWorst, text)]),
  ]
}
