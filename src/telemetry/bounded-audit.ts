import type { FastifyBaseLogger } from 'fastify'
import { audit } from './audit.ts'
import type { AuditFields } from './audit/events.ts'
import { destinationOf } from './log-destination.ts'

/** The kinds of lines that a stranger can cause at will. */
export type BoundedName = 'refused' | 'relay_refused' | 'login_failed' | 'login_not_started' | 'ops_refused'

const EVERY_MS = 10_000
/** As many lines of a source are written at once in each interval. The rest are counted. */
const BURST = 5
/** Sources that are counted separately. The others of a kind share a count. */
const MAX_SOURCES = 100

interface Source {
  written: number
  /** Writes the newest of the lines that were only counted. */
  writeNewest: (count: number) => void
  /** Events since the last line. */
  unwritten: number
  timer: NodeJS.Timeout
}

/** The sources of the current interval, by the destination of their lines. */
const tables = new WeakMap<object, Map<string, Source>>()

/**
 * Like `audit`, but a stranger cannot fill the log: after a few lines of a source within ten seconds, the next one is written
 * when that time is over, with the `count` of events that it stands for.
 * @param source who or what is counted together: the network of a client, for instance
 */
export function auditBounded<Name extends BoundedName>(
  log: FastifyBaseLogger,
  name: Name,
  fields: AuditFields<Name>,
  source: string,
): void {
  const sources = tableOf(log)
  const own = `${name}|${source}`
  const id = sources.has(own) || sources.size < MAX_SOURCES ? own : name
  const known = sources.get(id) ?? add(sources, id)
  if (known.written < BURST) {
    known.written++
    return audit(log, name, fields)
  }
  known.unwritten++
  known.writeNewest = (count) => audit(log, name, { ...fields, count })
}

/** Writes what is still only counted, since the process is about to end. */
export function flushAudit(log: FastifyBaseLogger): void {
  const sources = tableOf(log)
  for (const source of sources.values()) {
    clearInterval(source.timer)
    if (source.unwritten > 0) source.writeNewest(source.unwritten)
  }
  sources.clear()
}

function add(sources: Map<string, Source>, id: string): Source {
  const source: Source = {
    written: 0,
    writeNewest: () => undefined,
    unwritten: 0,
    timer: setInterval(() => {
      if (source.unwritten > 0) {
        source.writeNewest(source.unwritten)
        source.unwritten = 0
      } else {
        clearInterval(source.timer)
        sources.delete(id)
      }
    }, EVERY_MS).unref(),
  }
  sources.set(id, source)
  return source
}

function tableOf(log: FastifyBaseLogger): Map<string, Source> {
  const destination = destinationOf(log)
  let sources = tables.get(destination)
  if (sources === undefined) tables.set(destination, (sources = new Map<string, Source>()))
  return sources
}
