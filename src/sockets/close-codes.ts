import { WebSocket } from 'ws'
import { retryAfterMs } from '../http/retry-after.ts'
import type { ProblemCode } from '../problem.ts'
import type { Authorization } from '../sessions/index.ts'
import { MAX_QUEUE_MS } from '../store/shared-limits.ts'
import type { Attributes } from '../telemetry/traces/span.ts'

/** The status code and the reason of a close frame (RFC 6455 §5.5.1). To browsers, the reason is a problem code. */
export interface CloseStatus {
  readonly code: number
  readonly reason: string
  /** When the browser may come back. It is sent as `;retry_after=` behind the reason. */
  readonly retryAfterSeconds?: number
}

const close = (code: number, reason: ProblemCode | 'slow_consumer' | 'message_too_big'): CloseStatus => ({
  code,
  reason,
})

/** Every close that this server originates (docs/frontends.md, All codes). For upstream's see {@link fromUpstream}. */
export const CLOSE = {
  loginRequired: close(4401, 'login_required'),
  sessionExpired: close(4401, 'session_expired'),
  forbidden: close(4403, 'upstream_error'),
  notFound: close(4404, 'not_found'),
  slowConsumer: close(4408, 'slow_consumer'),
  tooManyRelays: { code: 4429, reason: 'too_many_relays' },
  rateLimited: close(4429, 'rate_limited'),
  upstreamBudget: close(4429, 'upstream_budget'),
  upstreamLimit: close(4429, 'upstream_limit'),
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

/** A close that asks the browser to come back after this time at the earliest, which is an hour at most. */
export function after(close: CloseStatus, ms: number): CloseStatus {
  const seconds = Math.ceil(Math.min(ms, MAX_QUEUE_MS) / 1000)
  return seconds > 0 ? { ...close, retryAfterSeconds: seconds } : close
}

/** The close of a socket whose browser is not authorized. */
export function closeOf(found: Exclude<Authorization, { is: 'authorized' }>): CloseStatus {
  switch (found.is) {
    case 'anonymous':
      return CLOSE.loginRequired
    case 'ended':
      return CLOSE.sessionExpired
    case 'providerDown':
    // Another token may be had a little later.
    case 'justRenewed':
      return CLOSE.providerDown
    case 'storeDown':
      return CLOSE.storeDown
  }
}

/** A close frame without a code. */
export const WITHOUT_CODE: CloseStatus = { code: 1005, reason: '' }

/** For upstream, when this server ended the relay or the browser left without a close frame. */
const GOING_AWAY: CloseStatus = { code: 1001, reason: '' }

/** For a peer that sends more than it may: too many messages, or an unfinished one that takes too much memory. */
export const POLICY_VIOLATION: CloseStatus = { code: 1008, reason: '' }

const MAX_REASON_BYTES = 123
const ABNORMAL = 1006

/** How the peer of an open socket has ended it. */
export interface Ending {
  /** The close frame of the peer: it gets this one, or has got or sent it. */
  readonly own: CloseStatus
  /** The close frame for the other end of a relay. */
  readonly other: CloseStatus
  /** For the log. */
  readonly why: string
  /** Whether upstream has broken the protocol, or its connection has failed. */
  readonly isFault?: true
}

/** How one kind of peer may end a socket, each way with its close codes. */
export interface Side {
  /** Whether this server is the client, which masks its frames (RFC 6455 §5.3). */
  readonly isMasked: boolean
  /** Its close frame has arrived or, without one, its connection has ended. */
  readonly closed: (code: number, reason: Buffer) => Ending
  /** It has broken the protocol, and ws has already sent it the close frame for that; or the connection failed. */
  readonly failed: (error: Error & { readonly code?: string }) => Ending
  /** Control frames pile up in the middle of a message. The connection is hung up afterwards. */
  readonly tooManyControls: Ending
  /** It does not answer. Where this is absent, the connection is cut, which ends it as well. */
  readonly lost?: (why: string) => Ending
}

const CONTROLS = 'control frames in the middle of a message'

/** A browser. One that is lost reads no close frame. */
export const BROWSER: Side = {
  isMasked: false,
  closed: (code, reason) => ({
    own: { code, reason: reason.toString() },
    other: fromBrowser(code, reason),
    why: 'closed',
  }),
  failed: ({ code = '' }) => ({ own: fromViolation(code), other: GOING_AWAY, why: code }),
  tooManyControls: { own: POLICY_VIOLATION, other: GOING_AWAY, why: CONTROLS },
}

/** Upstream, whose browser is not to blame. */
export const UPSTREAM: Side = {
  isMasked: true,
  closed: (code, reason) => ({ own: GOING_AWAY, other: fromUpstream(code, reason), why: `closed ${code}` }),
  failed({ code, name }) {
    const isTooBig = fromViolation(code) === CLOSE.tooBig
    return { own: GOING_AWAY, other: isTooBig ? CLOSE.tooBig : CLOSE.upstreamLost, why: code ?? name, isFault: true }
  },
  tooManyControls: { own: POLICY_VIOLATION, other: CLOSE.upstreamLost, why: CONTROLS, isFault: true },
  lost: (why) => ({ own: GOING_AWAY, other: CLOSE.upstreamLost, why }),
}

/** Upstream's close as the browser gets it. */
function fromUpstream(code: number, reason: Buffer): CloseStatus {
  if (code === WITHOUT_CODE.code) return WITHOUT_CODE
  if (code === ABNORMAL) return CLOSE.upstreamLost
  // Pages act on this server's own codes, so upstream cannot use them.
  if (isReserved(code)) return { code: 4000, reason: fitting(`${code} ${reason.toString()}`.trimEnd()) }
  return { code, reason: reason.toString() }
}

/** The browser's close as upstream gets it. */
function fromBrowser(code: number, reason: Buffer): CloseStatus {
  if (code === WITHOUT_CODE.code) return WITHOUT_CODE
  return code === ABNORMAL ? GOING_AWAY : { code, reason: reason.toString() }
}

/**
 * The close for a browser when upstream refuses a handshake or a one-time URL with this HTTP status.
 * @param retryAfter the Retry-After header of the refusal
 */
export function fromStatus(status: number, retryAfter?: string): CloseStatus {
  switch (status) {
    case 403:
      return CLOSE.forbidden
    case 404:
      return CLOSE.notFound
    case 429:
      return after(CLOSE.rateLimited, retryAfterMs(retryAfter) ?? 0)
    default:
      return CLOSE.upstreamError
  }
}

/** The close that ws has sent to a peer that broke the protocol (RFC 6455 §7.4.1), by the code of its error. */
function fromViolation(errorCode: string | undefined): CloseStatus {
  switch (errorCode) {
    case 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH':
    case 'WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH':
      return CLOSE.tooBig
    case 'WS_ERR_INVALID_UTF8':
      return { code: 1007, reason: '' }
    case 'WS_ERR_TOO_MANY_BUFFERED_PARTS':
      return POLICY_VIOLATION
    default:
      return { code: 1002, reason: '' }
  }
}

/**
 * Closes a socket after everything that was sent to it. If the peer does not read that, or does not answer the close, ws cuts it
 * off (closeTimeout in socketOptions).
 */
export function closeSocket(socket: WebSocket, close = GOING_AWAY): void {
  // A paused socket would never read the peer's close frame.
  socket.resume()
  if (close === WITHOUT_CODE) socket.close()
  else if (socket.readyState === WebSocket.OPEN) socket.close(close.code, wireReason(close))
}

function wireReason({ reason, retryAfterSeconds }: CloseStatus): string {
  return retryAfterSeconds === undefined ? reason : `${reason};retry_after=${retryAfterSeconds}`
}

const OWN_CODES: ReadonlySet<number> = new Set(Object.values(CLOSE).map(({ code }) => code))
const OWN_REASONS: ReadonlySet<string> = new Set(Object.values(CLOSE).map(({ reason }) => reason))

/** A close code as a metric label. Peers may choose among thousands, so only codes with a meaning here have their own label. */
export function codeLabel({ code }: CloseStatus): string {
  if (code < 3000 || OWN_CODES.has(code)) return String(code)
  return code < 4000 ? '3xxx' : '4xxx'
}

/**
 * A close as an event of a trace says it. The reasons of this server are words; those of peers are their own texts, so they are
 * left out.
 */
export function attributesOf({ code, reason }: CloseStatus): Attributes {
  return { 'websocket.close_code': code, ...(OWN_REASONS.has(reason) && { 'websocket.close_reason': reason }) }
}

function isReserved(code: number): boolean {
  return code >= 4400 && code <= 4499
}

/** As many whole characters of a reason as fit into a close frame (RFC 6455 §5.5). */
function fitting(reason: string): string {
  const { read } = new TextEncoder().encodeInto(reason, new Uint8Array(MAX_REASON_BYTES))
  return reason.slice(0, read)
}
