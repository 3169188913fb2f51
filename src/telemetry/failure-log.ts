import type { FastifyBaseLogger } from 'fastify'
import { isOutOfDescriptors, NO_DESCRIPTOR } from './descriptors.ts'
import { destinationOf } from './log-destination.ts'

/** A failure is logged at once, and then once per interval for as long as it recurs. */
const EVERY_MS = 1000
/** Kinds of failures that are counted separately. Any others are counted together. */
const MAX_KINDS = 100
const OTHERS = 'failures of too many kinds to tell them apart'
const MAX_MESSAGE = 200
/** The log does not go deeper either. */
const MAX_CAUSES = 4

/** Details of a failure: codes and statuses from small sets, nothing that belongs to a single request. */
type Details = Readonly<Record<string, string | number | undefined>>

interface Kind {
  /** The logger of the newest failure, so that the next line names its request. */
  log: FastifyBaseLogger
  readonly level: 'warn' | 'error'
  readonly message: string
  readonly details: object
  /** Failures since the last line. */
  unreported: number
  timer: NodeJS.Timeout | undefined
}

/** The current kinds of failures, by the destination of their lines: a logger and its children share one table. */
const tables = new WeakMap<object, Map<string, Kind>>()

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
    return record(log, { level: 'error', message: NO_DESCRIPTOR, details: {} }, NO_DESCRIPTOR)
  }
  const shown = cause instanceof Error && details['why'] === undefined ? { ...details, cause } : details
  record(log, { level, message, details: shown }, [message, ...Object.values(details), identity(cause)].join('|'))
}

/** Logs the failures that are still counted, since the process is about to end. */
export function flushFailures(log: FastifyBaseLogger): void {
  const kinds = tableOf(log)
  for (const kind of kinds.values()) {
    clearTimeout(kind.timer)
    if (kind.unreported > 0) report(kind)
  }
  kinds.clear()
}

function record(log: FastifyBaseLogger, line: Pick<Kind, 'level' | 'message' | 'details'>, id: string): void {
  const kinds = tableOf(log)
  const existing = kinds.get(id)
  if (existing !== undefined) {
    existing.unreported++
    existing.log = log
    return
  }
  if (kinds.size >= MAX_KINDS && id !== OTHERS) {
    return record(log, { level: 'warn', message: OTHERS, details: {} }, OTHERS)
  }
  const kind: Kind = { ...line, log, unreported: 1, timer: undefined }
  kinds.set(id, kind)
  report(kind)
  kind.timer = setTimeout(() => reportRest(kinds, id, kind), EVERY_MS).unref()
}

function reportRest(kinds: Map<string, Kind>, id: string, kind: Kind): void {
  if (kind.unreported === 0) return void kinds.delete(id)
  report(kind)
  kind.timer?.refresh()
}

function report(kind: Kind): void {
  const { log, level, message, details, unreported: count } = kind
  kind.unreported = 0
  log[level]({ ...details, count }, message)
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

function tableOf(log: FastifyBaseLogger): Map<string, Kind> {
  const destination = destinationOf(log)
  let kinds = tables.get(destination)
  if (kinds === undefined) tables.set(destination, (kinds = new Map<string, Kind>()))
  return kinds
}
