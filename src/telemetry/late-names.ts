import type { FastifyBaseLogger } from 'fastify'
import { names } from '../peers/names.ts'
import { BoundedLines } from './bounded-lines.ts'
import { untraced } from './traces/span.ts'

/** A name server that is silent is silent about every connection. */
const lines = new BoundedLines({ atOnce: 1, everyMs: 60_000 })

/** Logs, at most once a minute for each name, that connections have waited for a second for a name to be looked up. */
export function logLateNames(log: FastifyBaseLogger): void {
  names.onLate = (host, ageMs) => {
    const serves = ageMs === undefined ? 'none' : `addresses of ${Math.round(ageMs / 1000)} s ago`
    const write = (count: number): void =>
      untraced(() => log.warn({ host, serves, count }, 'a name is not resolved in time'))
    lines.add(log, { id: host, write })
  }
}
