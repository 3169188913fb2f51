import type { FastifyBaseLogger } from 'fastify'
import { symbols } from 'pino'
import { isOutOfDescriptors, NO_DESCRIPTOR } from './descriptors.ts'

/** A failure is told of at once, and again after each of these for as long as it lasts. */
const EVERY_MS = 1000
/** Failures told apart at one time. What is more is counted together. */
const MAX_KINDS = 100
const OTHERS = 'failures of too many kinds to tell them apart'
const MAX_MESSAGE = 200
/** As deep as the log goes, too. */
const MAX_CAUSES = 4

/** What is said of a failure: codes and statuses, of which there are few. Nothing of a single request. */
type Details = Readonly<Record<string, string | number | undefined>>

interface Kind {
  /** Of the newest failure, whose request the next line names. */
  log: FastifyBaseLogger
  readonly level: 'warn' | 'error'
  readonly message: string
  readonly details: object
  /** Failures that no line tells of yet. */
  unreported: number
  timer: NodeJS.Timeout | undefined
}

/** The failures that are being told of, by where their lines go: a log and its children have one table. */
const tables = new WeakMap<object, Map<string, Kind>>()

/**
 * Tells of a failure of something outside, such as upstream, at level 40 and without a stack: in one line a second at
 * most for each kind of failure, which says in `count` how many it stands for. What has failed for want of a file
 * descriptor is a fault of this process, whatever it was meant for, and told of as such at level 50.
 * @param details tell one kind from another, together with the message and the innermost cause
 * @param level `error` where the operator alone can put it right
 * @param cause is logged without its stack, unless a `why` in the details stands for it since its text may be secret
 */
export function logFailure(
  log: FastifyBaseLogger,
  message: string,
  details: Details = {},
  cause?: unknown,
  level: 'warn' | 'error' = 'warn',
): void {
  if (isOutOfDescriptors(cause)) {
    // Which of the many things that need one was the first to fail says nothing.
    return record(log, { level: 'error', message: NO_DESCRIPTOR, details: {} }, NO_DESCRIPTOR)
  }
  const shown = cause instanceof Error && details['why'] === undefined ? { ...details, cause } : details
  record(
    log,
    { level, message, details: shown },
    [message, ...Object.values(details), identity(cause)].join('|'),
  )
}

/** Tells at once of the failures that no line tells of yet: nothing more will come. */
export function flushFailures(log: FastifyBaseLogger): void {
  const kinds = tableOf(log)
  for (const kind of kinds.values()) {
    clearTimeout(kind.timer)
    if (kind.unreported > 0) report(kind)
  }
  kinds.clear()
}

function record(log: FastifyBaseLogger, what: Pick<Kind, 'level' | 'message' | 'details'>, id: string): void {
  const kinds = tableOf(log)
  const known = kinds.get(id)
  if (known !== undefined) {
    known.unreported++
    known.log = log
    return
  }
  if (kinds.size >= MAX_KINDS && id !== OTHERS) {
    return record(log, { level: 'warn', message: OTHERS, details: {} }, OTHERS)
  }
  const kind: Kind = { ...what, log, unreported: 1, timer: undefined }
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

/** What the innermost cause is. Its text counts only where it has no code: it may name a port, and so never be the same. */
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
  const destination =
    (log as FastifyBaseLogger & { readonly [symbols.streamSym]?: object })[symbols.streamSym] ?? log
  let kinds = tables.get(destination)
  if (kinds === undefined) tables.set(destination, (kinds = new Map<string, Kind>()))
  return kinds
}
