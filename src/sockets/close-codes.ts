import type { ProblemCode } from '../problem.ts'
import type { Authorization } from '../sessions/index.ts'

/** How a relay ends as the browser sees it: a close code, and a problem code as the reason. */
export interface CloseStatus {
  readonly code: number
  readonly reason: string
}

const close = (code: number, reason: ProblemCode | 'slow_consumer' | 'message_too_big'): CloseStatus => ({
  code,
  reason,
})

/** Every close of our own making (docs/frontends.md, How a socket ends). Upstream's own codes pass through {@link fromUpstream}. */
export const CLOSE = {
  loginRequired: close(4401, 'login_required'),
  sessionExpired: close(4401, 'session_expired'),
  forbidden: close(4403, 'upstream_error'),
  notFound: close(4404, 'not_found'),
  slowConsumer: close(4408, 'slow_consumer'),
  tooManyRelays: { code: 4429, reason: 'too_many_relays' },
  rateLimited: close(4429, 'rate_limited'),
  tooBig: close(1009, 'message_too_big'),
  ourFault: close(1011, 'internal_error'),
  restarting: close(1012, 'shutting_down'),
  providerDown: close(1013, 'provider_unavailable'),
  storeDown: close(1013, 'session_store_unavailable'),
  upstreamError: close(1013, 'upstream_error'),
  upstreamUnreachable: close(1013, 'upstream_unreachable'),
  upstreamTimeout: close(1013, 'upstream_timeout'),
  upstreamLost: close(1013, 'upstream_lost'),
} as const satisfies Record<string, CloseStatus>

/** How a socket ends whose browser is not authorized, or no longer. */
export function closeOf(found: Exclude<Authorization, { is: 'authorized' }>): CloseStatus {
  switch (found.is) {
    case 'anonymous':
      return CLOSE.loginRequired
    case 'ended':
      return CLOSE.sessionExpired
    case 'providerDown':
      return CLOSE.providerDown
    case 'storeDown':
      return CLOSE.storeDown
  }
}

/** Told to upstream when this server, or a browser without a word, ended it. */
export const GOING_AWAY: CloseStatus = { code: 1001, reason: '' }

/** Told to a peer whose half-received message costs more than it may. */
export const TOO_MANY_PIECES: CloseStatus = { code: 1008, reason: '' }

const MAX_REASON_BYTES = 123
const NO_STATUS = 1005
const ABNORMAL = 1006

/** Upstream's close as the browser gets it; undefined: a close frame without a code. */
export function fromUpstream(code: number, reason: Buffer): CloseStatus | undefined {
  if (code === NO_STATUS) return undefined
  if (code === ABNORMAL) return CLOSE.upstreamLost
  // Our own codes must stay ours: a page acts on them.
  if (isReserved(code)) return { code: 4000, reason: fitting(`${code} ${reason.toString()}`.trimEnd()) }
  return { code, reason: reason.toString() }
}

/** The browser's close as upstream gets it; undefined: a close frame without a code. */
export function fromBrowser(code: number, reason: Buffer): CloseStatus | undefined {
  if (code === NO_STATUS) return undefined
  return code === ABNORMAL ? GOING_AWAY : { code, reason: reason.toString() }
}

/** Upstream's refusal of a handshake, or of a one-time URL, as the browser gets it. */
export function fromStatus(status: number): CloseStatus {
  switch (status) {
    case 403:
      return CLOSE.forbidden
    case 404:
      return CLOSE.notFound
    case 429:
      return CLOSE.rateLimited
    default:
      return CLOSE.upstreamError
  }
}

/** What ws has told a peer that broke the protocol (RFC 6455 §7.4.1), by the code of its error. */
export function fromViolation(errorCode: string | undefined): CloseStatus {
  switch (errorCode) {
    case 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH':
    case 'WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH':
      return CLOSE.tooBig
    case 'WS_ERR_INVALID_UTF8':
      return { code: 1007, reason: '' }
    case 'WS_ERR_TOO_MANY_BUFFERED_PARTS':
      return TOO_MANY_PIECES
    default:
      return { code: 1002, reason: '' }
  }
}

const OWN_CODES: ReadonlySet<number> = new Set(Object.values(CLOSE).map(({ code }) => code))

/** A code as a metric label: peers may choose any of thousands, so only those with a meaning here have their own. */
export function codeLabel(close: CloseStatus | undefined): string {
  const code = close?.code ?? NO_STATUS
  if (code < 3000 || OWN_CODES.has(code)) return String(code)
  return code < 4000 ? '3xxx' : '4xxx'
}

function isReserved(code: number): boolean {
  return code >= 4400 && code <= 4499
}

/** As much of a reason as a close frame can hold (RFC 6455 §5.5), whole characters only. */
function fitting(reason: string): string {
  const { read } = new TextEncoder().encodeInto(reason, new Uint8Array(MAX_REASON_BYTES))
  return reason.slice(0, read)
}
