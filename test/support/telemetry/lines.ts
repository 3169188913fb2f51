import { pino, type Logger } from 'pino'
import { loggerOptions } from '../../../src/telemetry/log.ts'

/** A line of a log. */
export type Line = Record<string, unknown>

/** A log that adds its lines to these. */
export function logInto(lines: Line[]): Logger {
  return pino(loggerOptions('info'), { write: (line: string) => void lines.push(JSON.parse(line) as Line) })
}

/** How many failures the lines with this message count: one line counts all failures of a second. */
export function failureCount(log: readonly Readonly<Line>[], msg: string): number {
  return log.filter((line) => line['msg'] === msg).reduce((sum, { count }) => sum + Number(count), 0)
}
