/** Every error code that a browser may receive: its status and its title. */
const KINDS = {
  login_required: [401, 'Log in first'],
  session_expired: [401, 'The session has ended'],
  csrf_rejected: [403, 'The request did not come from an allowed page'],
  origin_rejected: [403, 'This origin is not allowed'],
  navigation_required: [403, 'Open this address in the browser window'],
  not_found: [404, 'Nothing is here'],
  method_not_allowed: [405, 'This method is not allowed here'],
  upgrade_required: [426, 'Another protocol is needed here'],
  validation_failed: [400, 'Some fields are not valid'],
  bad_request: [400, 'The request is malformed'],
  body_too_large: [413, 'The request body is too large'],
  unsupported_media_type: [415, 'This media type is not supported'],
  subject_unknown: [409, 'Other sessions of this user are not known'],
  current_session: [409, 'This is the session in use'],
  rate_limited: [429, 'Too many requests'],
  upstream_budget: [429, 'All users together have called the trading service too often'],
  upstream_limit: [429, 'The trading service limits your calls'],
  idempotency_key_required: [400, 'This call needs an Idempotency-Key'],
  idempotency_key_reused: [422, 'This Idempotency-Key belongs to another call'],
  idempotency_in_progress: [409, 'A call with this Idempotency-Key is in progress'],
  outcome_unknown: [409, 'Nobody knows whether the call with this Idempotency-Key was executed'],
  answer_not_kept: [409, 'The response to this Idempotency-Key was not kept'],
  upstream_error: [502, 'The trading service answered with an error'],
  upstream_unreachable: [502, 'The trading service could not be reached'],
  upstream_lost: [502, 'The connection to the trading service was lost'],
  upstream_timeout: [504, 'The trading service did not answer in time'],
  credential_renewed: [503, 'The credential was renewed; repeat the request'],
  provider_unavailable: [503, 'The login provider is not available'],
  orders_paused: [503, 'Orders are paused'],
  session_store_unavailable: [503, 'Sessions are not available right now'],
  shutting_down: [503, 'This server is restarting'],
  internal_error: [500, 'Something went wrong here'],
} as const satisfies Record<string, readonly [status: number, title: string]>

/** The challenge that a 401 must have (RFC 9110 §15.5.2). Browsers ask nobody for a password in a scheme they do not know. */
const CHALLENGE = 'Session'

/** A stable, documented error code. */
export type ProblemCode = keyof typeof KINDS

/** What to do about a problem of each code. */
const ADVICE: Readonly<Record<ProblemCode, string>> = {
  login_required: 'This needs a session, and the request carried none. Log in, then try again.',
  session_expired:
    'It was ended by a logout elsewhere, a newer login, its time limit or the operator, or its token was revoked. Log in again.',
  csrf_rejected:
    'Only scripts of allowed pages may call this address, with the header X-CSRF: 1. It cannot be opened in the browser window.',
  origin_rejected:
    'The page that sent this request is not on an allowed origin. The operator of this server lists these in FRONTEND_ORIGINS.',
  navigation_required:
    'Follow a link to this address, or open it in the browser window. Images, frames, scripts and prefetches are refused.',
  not_found: 'Check the address. A malformed identifier gets the same response.',
  method_not_allowed: 'The Allow header names the methods that this address accepts.',
  upgrade_required:
    'A socket needs a WebSocket handshake of version 13. Any other request must be HTTP/1.1 and name its Host.',
  validation_failed: 'Correct the fields that are named, then send the request again.',
  bad_request: 'The request could not be understood. Correct it before you send it again.',
  body_too_large: 'Nothing was executed. Send a smaller body.',
  unsupported_media_type: 'Send the body with a Content-Type that can be read, and without a Content-Encoding.',
  subject_unknown:
    'Whose session this is, or was, is not known here, so the other sessions of the user are not known either, and may go on. A logout has ended the session of this browser all the same.',
  current_session: 'It was not ended. To end it, log out.',
  rate_limited: 'One session, or one address, sent too many requests. Wait for as long as Retry-After says.',
  upstream_budget:
    'The trading service limits the calls of all users together. Nothing was sent, so nothing was executed. Wait for as long as Retry-After says.',
  upstream_limit:
    'The trading service has refused a call of this user, and asked to wait; other users are not concerned. Nothing was sent, so nothing was executed. Wait for as long as Retry-After says.',
  idempotency_key_required: 'Send the call with a new key in the header Idempotency-Key.',
  idempotency_key_reused:
    'Nothing was executed. Use a new key for every call. The same key is only for sending exactly the same call again.',
  idempotency_in_progress:
    'Nothing was sent again, but the first call may yet be executed. Repeat it later with the same key to get its response. After a new login, look at what it did instead.',
  outcome_unknown:
    'The first call may have been executed: look before you do anything else. No call with this key will be sent again.',
  answer_not_kept:
    'The first call has finished, and its response was not kept, because it was too large or the session has kept too many. Look at what it did. No call with this key will be sent again.',
  upstream_error:
    'The trading service failed. A request that changes something may have been executed: look before you repeat it.',
  upstream_unreachable: 'Nothing was sent to the trading service, so nothing was executed. Try again later.',
  upstream_lost:
    'The connection failed after something had been sent. A request that changes something may have been executed: look before you repeat it.',
  upstream_timeout: 'A request that changes something may have been executed: look before you repeat it.',
  credential_renewed: "The session's token had expired and was renewed. The request was not executed: send it again.",
  provider_unavailable: 'The session goes on, but its token needs to be renewed. Try again in a moment.',
  orders_paused:
    'The operator has paused orders, of all users or of this one; everything else goes on. Nothing was sent, so nothing was executed. If there is a Retry-After, orders go on after that time, else nobody knows yet.',
  session_store_unavailable:
    'This server cannot read sessions at the moment. Nobody is logged out by that. Try again in a moment.',
  shutting_down: 'Another instance takes over. Try again in a moment.',
  internal_error: 'This is a fault of this server. If it happens again, report the request id.',
}

/** Every code, for the OpenAPI document. */
export const PROBLEM_CODES = Object.keys(KINDS) as readonly ProblemCode[]

/** One field that failed validation. */
export interface FieldError {
  readonly field: string
  readonly message: string
}

/** What a problem may contain besides its code. `status` is set where the code's own is not exact enough. */
export interface ProblemDetails {
  readonly detail?: string | undefined
  readonly status?: number
  readonly errors?: readonly FieldError[]
  /** The request may have been executed, so the client must check before it repeats it. */
  readonly outcome?: 'unknown'
  readonly loginUrl?: string
  /** The `error` of a protocol of OAuth (RFC 6749 §5.2), for a client that expects it. */
  readonly oauthError?: string
  readonly retryAfterSeconds?: number | undefined
  /** Other response headers of this problem, by lower-case name. */
  readonly headers?: Readonly<Record<string, string>>
  /** Only for the log, never sent to the client. */
  readonly cause?: unknown
}

/** An error whose details a browser may see (RFC 9457). Any other error is sent as a bare `internal_error`. */
export class Problem extends Error {
  readonly code: ProblemCode
  readonly status: number
  readonly details: ProblemDetails

  constructor(code: ProblemCode, details: ProblemDetails = {}) {
    super(details.detail ?? KINDS[code][1], { cause: details.cause })
    this.name = 'Problem'
    this.code = code
    this.status = details.status ?? KINDS[code][0]
    this.details = details
  }

  /** The short text that is the same for every problem of this code. */
  get title(): string {
    return KINDS[this.code][1]
  }

  /** What to do about a problem of this code. */
  get advice(): string {
    return ADVICE[this.code]
  }

  /** The response headers of this problem besides its content type. */
  headers(): Record<string, string> {
    const { retryAfterSeconds: seconds, headers } = this.details
    return {
      ...headers,
      ...(this.status === 401 && { 'www-authenticate': CHALLENGE }),
      ...(seconds !== undefined && { 'retry-after': String(seconds) }),
    }
  }

  /** The `application/problem+json` body (RFC 9457 §3). */
  body(requestId: string): string {
    const { errors, outcome, loginUrl, oauthError } = this.details
    return JSON.stringify({
      type: `/problems/${this.code}`,
      title: this.title,
      status: this.status,
      detail: this.message,
      code: this.code,
      request_id: requestId,
      errors,
      outcome,
      login_url: loginUrl,
      error: oauthError,
    })
  }
}

/** Returns the text as a code if it is one. */
export function problemCodeOf(text: string): ProblemCode | undefined {
  return Object.hasOwn(KINDS, text) ? (text as ProblemCode) : undefined
}
