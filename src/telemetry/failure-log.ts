import type { FastifyBaseLogger } from 'fastify'
import { names } from '../peers/names.ts'
import { BoundedLines } from './bounded-lines.ts'
import { isOutOfDescriptors, NO_DESCRIPTOR } from './descriptors.ts'
import { untraced } from './traces/span.ts'

/** A failure is logged at once, and then once a second for as long as it recurs. */
const failures = new BoundedLines({ atOnce: 1, everyMs: 1000 })
/** A name server that is silent is silent about every connection. */
const lateNames = new BoundedLines({ atOnce: 1, everyMs: 60_000 })
const OTHERS = 'failures of too many kinds to tell them apart'
const MAX_MESSAGE = 200
/** The log does not go deeper either. */
const MAX_CAUSES = 4

/** Details of a failure: codes and statuses from small sets, nothing that belongs to a single request. */
type Details = Readonly<Record<string, string | number | undefined>>

/**
 * Logs a failure of an external service, such as upstream, at level 40 and without a stack. Each kind of failure is
 * logged at most once a second; `count` is the number of failures that the line stands for. A lack of file descriptors
 * is a fault of this process, whatever it was about to do, and is logged as such at level 50.
 * @param details distinguish kinds of failures, together with the message and the innermost cause
 * @param cause is logged without its stack, or not at all if the details have a `why`, since its text may be secret
 * @param level `error` if only the operator can fix it
 */
export function logFailure(
  log: FastifyBaseLogger,
  message: string,
  details: Details = {},
  cause?: unknown,
  level: 'warn' | 'error' = 'warn',
): void {
  if (isOutOfDescriptors(cause)) {
    // It is a coincidence which of the calls that need a descriptor failed first.
    return add(log, NO_DESCRIPTOR, 'error', NO_DESCRIPTOR, {})
  }
  const shown = cause instanceof Error && details['why'] === undefined ? { ...details, cause } : details
  add(log, [message, ...Object.values(details), identity(cause)].join('|'), level, message, shown)
}

/** Logs, at most once a minute for each name, that connections have waited for a second for a name to be looked up. */
export function logLateNames(log: FastifyBaseLogger): void {
  names.onLate = (host, ageMs) => {
    const serves = ageMs === undefined ? 'none' : `addresses of ${Math.round(ageMs / 1000)} s ago`
    const write = (count: number): void =>
      untraced(() => log.warn({ host, serves, count }, 'a name is not resolved in time'))
    lateNames.add(log, { id: host, write })
  }
}

function add(log: FastifyBaseLogger, id: string, level: 'warn' | 'error', message: string, details: object): void {
  const others = { id: OTHERS, write: (count: number) => log.warn({ count }, OTHERS) }
  failures.add(log, { id, write: (count) => log[level]({ ...details, count }, message) }, others)
}

/** Identifies the innermost cause, by its message only if it has no code: a message may name a port, which varies. */
function identity(cause: unknown): string {
  let inner = cause
  for (let depth = 0; depth < MAX_CAUSES && inner instanceof Error; depth++) {
    if (!(inner.cause instanceof Error)) break
    inner = inner.cause
  }
  if (!(inner instanceof Error)) return ''
  const { code, message } = inner as { code?: unknown; message: string }
  return `${inner.name} ${typeof code === 'string' ? code : message}`.slice(0, MAX_MESSAGE)
}
