/** Every error code a browser may see (CONTRACT: errors), with its status and title. */
const KINDS = {
  login_required: [401, 'Log in first'],
  session_expired: [401, 'The session has ended'],
  csrf_rejected: [403, 'The request did not come from an allowed page'],
  origin_rejected: [403, 'This origin is not allowed'],
  navigation_required: [403, 'Open this address in the browser window'],
  not_found: [404, 'Nothing is here'],
  method_not_allowed: [405, 'This method is not allowed here'],
  upgrade_required: [426, 'This address speaks WebSocket only'],
  validation_failed: [400, 'Some fields are not valid'],
  bad_request: [400, 'The request is malformed'],
  body_too_large: [413, 'The request body is too large'],
  unsupported_media_type: [415, 'This media type is not supported'],
  rate_limited: [429, 'Too many requests'],
  upstream_error: [502, 'The trading service answered with an error'],
  upstream_unreachable: [502, 'The trading service could not be reached'],
  upstream_lost: [502, 'The connection to the trading service was lost'],
  upstream_timeout: [504, 'The trading service did not answer in time'],
  credential_renewed: [503, 'The credential was renewed, repeat the request'],
  provider_unavailable: [503, 'The login provider is not available'],
  session_store_unavailable: [503, 'Sessions are not available right now'],
  shutting_down: [503, 'This server is restarting'],
  internal_error: [500, 'Something went wrong here'],
} as const satisfies Record<string, readonly [status: number, title: string]>

/** A stable, documented error code. */
export type ProblemCode = keyof typeof KINDS

/** Every code, for the documentation and its test. */
export const PROBLEM_CODES = Object.keys(KINDS) as readonly ProblemCode[]

/** One field that failed validation. */
export interface FieldError {
  readonly field: string
  readonly message: string
}

/** What a problem may say beyond its code. `status` only where upstream's own is passed on. */
export interface ProblemDetails {
  readonly detail?: string
  readonly status?: number
  readonly errors?: readonly FieldError[]
  /** The request may have been executed: look before repeating it. */
  readonly outcome?: 'unknown'
  readonly loginUrl?: string
  readonly retryAfterSeconds?: number
  readonly allow?: string
  /** For the log only. */
  readonly cause?: unknown
}

/** An error a browser may know (RFC 9457). Anything else that is thrown becomes a bare `internal_error`. */
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

  /** Headers that belong to this problem, beside its content type. */
  headers(): Record<string, string> {
    const headers: Record<string, string> = {}
    if (this.details.retryAfterSeconds !== undefined) {
      headers['retry-after'] = String(this.details.retryAfterSeconds)
    }
    if (this.details.allow !== undefined) headers['allow'] = this.details.allow
    return headers
  }

  /** The `application/problem+json` body (RFC 9457 §3). */
  body(requestId: string): string {
    const { errors, outcome, loginUrl } = this.details
    return JSON.stringify({
      type: `/problems/${this.code}`,
      title: KINDS[this.code][1],
      status: this.status,
      detail: this.message,
      code: this.code,
      request_id: requestId,
      errors,
      outcome,
      login_url: loginUrl,
    })
  }
}
