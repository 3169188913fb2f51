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
