import { pino, type Logger, type LoggerOptions } from 'pino'

const MAX_CAUSES = 4

/** What is logged of an error: its kind and place. Nothing else it may carry, since that may be a credential. */
interface LoggedError {
  readonly type: string
  readonly code?: string
  readonly message: string
  readonly stack?: string
  readonly cause?: LoggedError
}

/** The log: JSON lines on stdout. */
export function createLog(level: string): Logger {
  return pino(loggerOptions(level))
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
