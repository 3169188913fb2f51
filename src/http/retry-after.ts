import { parseHttpDate } from '../time/http-date.ts'
import { storeNow } from '../time/store-time.ts'

/**
 * Milliseconds that a Retry-After header asks for, as a number of seconds or as a date (RFC 9110 §10.2.3): at least 0.
 * Infinity for a number of more than nine digits; undefined when the header is missing or unreadable. A date is judged by the
 * clock of the store, since that of this machine may be wrong.
 */
export function retryAfterMs(text: string | null | undefined): number | undefined {
  if (text === null || text === undefined) return undefined
  if (/^\d+$/.test(text)) return text.length > 9 ? Infinity : Number(text) * 1000
  const at = parseHttpDate(text)
  return Number.isNaN(at) ? undefined : Math.max(0, at - storeNow())
}
