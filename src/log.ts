import { pino, type Logger, type LoggerOptions } from 'pino'

const MAX_CAUSES = 4
/** A longer write to a pipe may be cut in two by that of another worker (POSIX write). */
const PIPE_BUF = 4096
const WRITE_BYTES = 3072
/** No line waits longer than this. */
const FLUSH_MS = 250
/** When nobody reads the log, lines are dropped rather than the memory filled. */
const MAX_WAITING_BYTES = 16 * 1_048_576

/** What is logged of an error: its kind and place. Nothing else it may carry, since that may be a credential. */
interface LoggedError {
  readonly type: string
  readonly code?: string
  readonly message: string
  readonly stack?: string
  readonly cause?: LoggedError
}

/**
 * The log: JSON lines on stdout, several in a write. What waits is written before the process exits.
 * @param worker which of several processes writes, if there are several
 */
export function createLog(level: string, worker?: number): Logger {
  const stdout = pino.destination({
    dest: 1,
    sync: false,
    minLength: WRITE_BYTES,
    maxWrite: PIPE_BUF,
    periodicFlush: FLUSH_MS,
    maxLength: MAX_WAITING_BYTES,
  })
  // Without its flushSync, which every fatal line would wait in: for ever, where nobody reads.
  const destination = {
    write: (line: string) => void stdout.write(line),
    flush: (done?: () => void) => stdout.flush(done),
  }
  return pino({ ...loggerOptions(level), base: worker === undefined ? null : { worker } }, destination)
}

/** Requests, replies and errors are written field by field, never as they are. */
export function loggerOptions(level: string): LoggerOptions {
  return {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    serializers: {
      err: (error: unknown) => loggedError(error, MAX_CAUSES),
      req: () => undefined,
      res: () => undefined,
    },
  }
}

function loggedError(error: unknown, depth: number): LoggedError | undefined {
  if (!(error instanceof Error) || depth === 0) return undefined
  const { code } = error as { code?: unknown }
  const cause = loggedError(error.cause, depth - 1)
  return {
    type: error.name,
    ...(typeof code === 'string' && { code }),
    message: error.message,
    ...(error.stack !== undefined && { stack: error.stack }),
    ...(cause && { cause }),
  }
}
