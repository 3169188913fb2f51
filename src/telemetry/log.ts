import program from '../../package.json' with { type: 'json' }
import { createHmac, randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { pino, type Logger, type LoggerOptions } from 'pino'
import { LogWriter } from './log-writer.ts'
import { activeSpan } from './traces/span.ts'

const MAX_CAUSES = 4
/** An external service may send an error text of any length. */
const MAX_FOREIGN_TEXT = 500
/** A longer write to a pipe may be interleaved with that of another process (POSIX write). */
const PIPE_BUF = 4096
/** The capacity of a pipe, and at full load no more than forty milliseconds of lines. Each write wakes a thread. */
const CHUNK_BYTES = 65_536
const TAG_LENGTH = 10

/** The log of a process. */
export interface ServerLog {
  readonly log: Logger
  /** Names this process for operators, in each line too. */
  readonly instance: string
  /** What becomes of the lines. */
  readonly lines: LogWriter
}

interface LogProcess {
  /** The id of a worker process. */
  readonly worker: number | undefined
  /** Whether other processes write to the same stdout. */
  readonly isShared: boolean
  /** Adds the ids of the active span to each line. */
  readonly isTraced?: boolean
}

/** Creates a log that writes JSON lines to stdout, several at a time. */
export function createLog(level: string, { worker, isShared, isTraced = false }: LogProcess): ServerLog {
  const stdout = new LogWriter(1, isShared ? PIPE_BUF : CHUNK_BYTES, (lines) =>
    log.warn({ lines }, 'lines of the log were dropped'),
  )
  const instance = instanceName()
  const log: Logger = pino(loggerOptions(level, { instance, worker, isTraced }), stdout)
  return { log, instance, lines: stdout }
}

/** A name for this process that operators understand: its host, its id there, and a word to tell apart several in one process. */
export function instanceName(): string {
  return `${hostname()}/${process.pid}/${randomBytes(3).toString('hex')}`
}

/**
 * Pino's options. Requests and responses are not logged at all, and errors only with known fields.
 * Each line says which process wrote it; pino makes that text once.
 */
export function loggerOptions(
  level: string,
  { instance = instanceName(), worker, isTraced = false }: { readonly instance?: string } & Partial<LogProcess> = {},
): LoggerOptions {
  return {
    level,
    base: { instance, version: program.version, ...(worker !== undefined && { worker }) },
    ...(isTraced && { mixin: () => activeSpan().ids ?? {} }),
    timestamp: logTime,
    serializers: {
      /** A fault of this server, with its stack. */
      err: (error: unknown) => loggedError(error, true),
      /** A failure of an external service. The stack would only show where this server noticed it. */
      cause: (error: unknown) => loggedError(error, false),
      req: () => undefined,
      res: () => undefined,
    },
  }
}

/** Picks the fields of an error that may be logged. Any other property might be a credential. */
function loggedError(error: unknown, hasStack: boolean, depth = MAX_CAUSES): object | undefined {
  if (!(error instanceof Error) || depth === 0) return undefined
  const { code } = error as { code?: unknown }
  const cause = loggedError(error.cause, hasStack, depth - 1)
  return {
    type: error.name,
    ...(typeof code === 'string' && { code }),
    message: hasStack ? error.message : error.message.slice(0, MAX_FOREIGN_TEXT),
    ...(hasStack && error.stack !== undefined && { stack: error.stack }),
    ...(cause && { cause }),
  }
}

/**
 * Returns a short pseudonym for the log. Without the secret it cannot be traced back, even if names can be guessed.
 * @param name must be unique across kinds: the store key of a session, or `kind:` and a name for anything else
 */
export function logTag(secret: string, name: string): string {
  return createHmac('sha256', secret).update(name).digest('base64url').slice(0, TAG_LENGTH)
}

let second = NaN
/** The field up to the milliseconds. */
let start = ''

/**
 * The field of the present time in a log line, as pino's `timestamp` wants it: ISO 8601 in UTC, with milliseconds. The text
 * of a second is made once, since a whole one takes as long as the rest of the line.
 */
export function logTime(now = Date.now()): string {
  const ms = now % 1000
  if (now - ms !== second) {
    second = now - ms
    start = `,"time":"${new Date(now).toISOString().slice(0, -'123Z'.length)}`
  }
  return `${start}${String(ms).padStart(3, '0')}Z"`
}
