import { parseHttpDate } from '../time/http-date.ts'
import { fetchHead } from './provider-connections.ts'
import type { ProbeResult } from './probe-requests.ts'

const TIMEOUT_MS = 5000
/** A signature of this client is good for a minute, beginning now, and providers differ in how much they forgive (RFC 7523 §3). */
const TOLERANCE_SECONDS = 30
/** `Date` has whole seconds, and its way takes some time. Anything less is no difference. */
const NOTICEABLE_SECONDS = 3

/**
 * Returns how far the clock of this machine is ahead of the `Date` of an endpoint's response (RFC 9110 §6.6.1), in seconds;
 * negative if it is behind. Any status will do.
 * @returns undefined if the response has no date, or that of an earlier one, from a cache
 * @throws the failure, if there is no response
 */
export async function secondsAheadOf(endpoint: string): Promise<number | undefined> {
  const sentAt = Date.now()
  const response = await fetchHead(endpoint, TIMEOUT_MS)
  const date = parseHttpDate(response.headers.get('date') ?? '')
  if (Number.isNaN(date) || response.headers.has('age')) return undefined
  // The response was made halfway, and half a second was cut off on average.
  const halfway = (sentAt + Date.now()) / 2
  return Math.round((halfway - (date + 500)) / 1000)
}

/** Says whether logins may fail because of the difference. */
export function clockResult(aheadSeconds: number | undefined): ProbeResult {
  if (aheadSeconds === undefined) return { is: 'ok', message: 'names no date, so its clock could not be compared' }
  if (Math.abs(aheadSeconds) <= TOLERANCE_SECONDS) {
    const message = `has the time of this machine (${Math.abs(aheadSeconds)} s apart, ${TOLERANCE_SECONDS} s are tolerated)`
    return { is: 'ok', message }
  }
  const message = `has another time: ${clockText(aheadSeconds)}; above ${TOLERANCE_SECONDS} s it may refuse what a key signs`
  return { is: 'warning', message, advice: 'Synchronize the clock of this machine (NTP), or tell the provider.' }
}

/** “the clock of this machine is 120 s behind”; undefined if it is not, as far as that can be seen. */
export function clockDoubt(aheadSeconds: number | undefined): string | undefined {
  return Math.abs(aheadSeconds ?? 0) < NOTICEABLE_SECONDS ? undefined : clockText(aheadSeconds ?? 0)
}

function clockText(aheadSeconds: number): string {
  return `the clock of this machine is ${Math.abs(aheadSeconds)} s ${aheadSeconds > 0 ? 'ahead' : 'behind'}`
}
