/** How the three forms begin. Without this, Date.parse reads `-5` or `7, 7` as a day of 2001. */
const DATE = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/
/** How the form without a zone ends. It is in UTC, too, and Date.parse would take it for the time of this machine's zone. */
const WITHOUT_ZONE = / \d{4}$/

/** The time of an HTTP date in any of its three forms (RFC 9110 §5.6.7), in ms since 1970. NaN if the text is none. */
export function parseHttpDate(text: string): number {
  return DATE.test(text) ? Date.parse(WITHOUT_ZONE.test(text) ? `${text} GMT` : text) : NaN
}
