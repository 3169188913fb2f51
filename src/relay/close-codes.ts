import type { ProblemCode } from '../problem.ts'

/** How a relay ends as the browser sees it: a close code, and a problem code as the reason. */
export interface Ending {
  readonly code: number
  readonly reason: string
}

const ending = (code: number, reason: ProblemCode | 'slow_consumer' | 'message_too_big'): Ending => ({
  code,
  reason,
})

/** Every ending of our own making (CONTRACT: relays). Upstream's own codes pass through {@link fromUpstream}. */
export const ENDINGS = {
  loginRequired: ending(4401, 'login_required'),
  sessionExpired: ending(4401, 'session_expired'),
  forbidden: ending(4403, 'upstream_error'),
  notFound: ending(4404, 'not_found'),
  slowConsumer: ending(4408, 'slow_consumer'),
  tooManyRelays: { code: 4429, reason: 'too_many_relays' },
  rateLimited: ending(4429, 'rate_limited'),
  tooBig: ending(1009, 'message_too_big'),
  ourFault: ending(1011, 'internal_error'),
  restarting: ending(1012, 'shutting_down'),
  providerDown: ending(1013, 'provider_unavailable'),
  storeDown: ending(1013, 'session_store_unavailable'),
  upstreamError: ending(1013, 'upstream_error'),
  upstreamUnreachable: ending(1013, 'upstream_unreachable'),
  upstreamTimeout: ending(1013, 'upstream_timeout'),
  upstreamLost: ending(1013, 'upstream_lost'),
} as const satisfies Record<string, Ending>

const MAX_REASON_BYTES = 123
const NO_STATUS = 1005
const ABNORMAL = 1006

/** Upstream's close as the browser gets it; undefined: a close frame without a code. */
export function fromUpstream(code: number, reason: Buffer): Ending | undefined {
  if (code === NO_STATUS) return undefined
  if (code === ABNORMAL) return ENDINGS.upstreamLost
  // Our own codes must stay ours: a page acts on them.
  if (code >= 4400 && code <= 4499) return { code: 4000, reason: truncate(`${code} ${reason.toString()}`) }
  return { code, reason: reason.toString() }
}

/** The browser's close as upstream gets it; undefined: a close frame without a code. */
export function fromBrowser(code: number, reason: Buffer): Ending | undefined {
  if (code === NO_STATUS) return undefined
  return code === ABNORMAL ? { code: 1001, reason: '' } : { code, reason: reason.toString() }
}

/** Cuts a reason to what a close frame can hold (RFC 6455 §5.5), never in the middle of a character. */
function truncate(reason: string): string {
  let cut = reason
  while (Buffer.byteLength(cut) > MAX_REASON_BYTES) cut = cut.slice(0, -1)
  return cut.toWellFormed()
}
