import { storeNow } from '../time/store-time.ts'

/** How the three forms of a date begin. Without this, Date.parse reads `-5` or `7, 7` as a day of 2001. */
const DATE = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/
/** How the form without a zone ends. It is in UTC, too, and Date.parse would take it for the time of this machine's zone. */
const WITHOUT_ZONE = / \d{4}$/

/**
 * Milliseconds that a Retry-After header asks for, as a number of seconds or as a date (RFC 9110 §10.2.3): at least 0.
 * Infinity for a number of more than nine digits; undefined when the header is missing or unreadable. A date is judged by the
 * clock of the store, since that of this machine may be wrong.
 */
export function retryAfterMs(text: string | null | undefined): number | undefined {
  if (text === null || text === undefined) return undefined
  if (/^\d+$/.test(text)) return text.length > 9 ? Infinity : Number(text) * 1000
  const at = DATE.test(text) ? Date.parse(WITHOUT_ZONE.test(text) ? `${text} GMT` : text) : NaN
  return Number.isNaN(at) ? undefined : Math.max(0, at - storeNow())
}
