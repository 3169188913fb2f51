import { pino, type Logger, type LoggerOptions } from 'pino'
import { LogWriter } from './log-writer.ts'

const MAX_CAUSES = 4
/** What somebody else says of a failure may be as long as they like. */
const MAX_FOREIGN_TEXT = 500
/** A longer write to a pipe may be cut in two by that of another process (POSIX write). */
const PIPE_BUF = 4096
/** As much as a pipe takes at once with room to spare, and a hundredth of a second's lines at most. */
const CHUNK_BYTES = 16_384

/** What is logged of an error: its kind and text, and of our own faults the place. Nothing else it may carry, since that may be a credential. */
interface LoggedError {
  readonly type: string
  readonly code?: string
  readonly message: string
  readonly stack?: string
  readonly cause?: LoggedError
}

/** Which process writes, where there are several. */
export interface LogOptions {
  /** Of a worker. */
  readonly worker: number | undefined
  /** Others write to the same stdout. */
  readonly isShared: boolean
}

/** The log of a process. */
export interface ServerLog {
  readonly log: Logger
  /** How many of its lines were lost so far. */
  readonly droppedLines: () => number
}

/** The log: JSON lines on stdout, several in a write. */
export function createLog(level: string, { worker, isShared }: LogOptions): ServerLog {
  const stdout = new LogWriter(1, isShared ? PIPE_BUF : CHUNK_BYTES, (lines) =>
    log.warn({ lines }, 'lines of the log were dropped'),
  )
  // Only what is needed of it: a flushSync would be called with every fatal line, and wait for ever where nobody reads.
  const destination = {
    write: (line: string) => stdout.write(line),
    flush: (done?: () => void) => stdout.flush(done),
  }
  const base = worker === undefined ? null : { worker }
  const log: Logger = pino({ ...loggerOptions(level), base }, destination)
  return { log, droppedLines: () => stdout.droppedLines }
}

/** Requests, replies and errors are written field by field, never as they are. */
export function loggerOptions(level: string): LoggerOptions {
  return {
    level,
    base: null,
    timestamp: logTime,
    serializers: {
      /** A fault of ours: the stack leads to it. */
      err: (error: unknown) => loggedError(error, true),
      /** A failure of something outside. Where we noticed it helps nobody. */
      cause: (error: unknown) => loggedError(error, false),
      req: () => undefined,
      res: () => undefined,
    },
  }
}

let lastMs = 0
let lastTime = ''

/** The time of a line, as pino wants it. Formatting it takes longer than most of the line, and many are of one millisecond. */
export function logTime(): string {
  const now = Date.now()
  if (now !== lastMs) {
    lastMs = now
    lastTime = `,"time":"${new Date(now).toISOString()}"`
  }
  return lastTime
}

function loggedError(error: unknown, hasStack: boolean, depth = MAX_CAUSES): LoggedError | undefined {
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
