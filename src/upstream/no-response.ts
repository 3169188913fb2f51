/** How much of a request was written to a connection. */
export type Sent = 'nothing' | 'part' | 'whole'

/** Why there is no response (docs/reference.md, REST). */
export type NoResponse =
  /** No byte of the request was sent. */
  | { readonly is: 'unreachable'; readonly cause: Error }
  /** At least part of the request was sent, then the connection failed. `responseBegan`: part of a response had arrived. */
  | { readonly is: 'lost'; readonly cause: Error; readonly responseBegan: boolean }
  /** At least part of the request was sent, and no response arrived in time. */
  | { readonly is: 'timeout'; readonly cause: Error }

/**
 * TLS alerts by which a server rejects a client's certificate or its absence (RFC 8446 §6.2). Under TLS 1.3 they arrive
 * after the client has written its first request, but the server has not read any of it. OpenSSL names some for the version of TLS,
 * and others `SSL/TLS`.
 */
const REFUSED_IN_TLS =
  /^ERR_SSL_[\w/]*ALERT_(?:CERTIFICATE_REQUIRED|BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|CERTIFICATE_(?:REVOKED|EXPIRED|UNKNOWN)|UNKNOWN_CA|ACCESS_DENIED|HANDSHAKE_FAILURE)$/

/** The errors of connections over which something had arrived before. */
const ofUsed = new WeakSet<Error>()

/** Notes that the error of a connection is no refusal of its handshake, since something has arrived over it before. */
export function noteUsed(error: Error): void {
  ofUsed.add(error)
}

/** Classifies the failure of a request that got no response. */
export function noResponse(cause: Error, sent: Sent, responseBegan: boolean): NoResponse {
  const isRefused = !responseBegan && !ofUsed.has(cause) && REFUSED_IN_TLS.test(codeOf(cause))
  if (sent === 'nothing' || isRefused) return { is: 'unreachable', cause }
  return isTimeout(cause) ? { is: 'timeout', cause } : { is: 'lost', cause, responseBegan }
}

/** Whether upstream certainly sent no part of a response, so that a GET may be repeated on another connection. */
export function failedBeforeResponse(outcome: { readonly is: string; readonly responseBegan?: boolean }): boolean {
  return outcome.is === 'unreachable' || (outcome.is === 'lost' && outcome.responseBegan === false)
}

/** Whether the error shows that a response had begun: one that is not HTTP, or whose headers are too long. */
export function hasResponseBegun(cause: Error & { code?: string }): boolean {
  return cause.name === 'HTTPParserError' || cause.code === 'UND_ERR_HEADERS_OVERFLOW'
}

/** The code of an error, else its name. Both are safe to log, unlike the message, which may contain a URL. */
export function codeOf(error: Error & { code?: unknown }): string {
  return typeof error.code === 'string' ? error.code : error.name
}

function isTimeout(cause: Error & { code?: string }): boolean {
  return cause.code === 'UND_ERR_HEADERS_TIMEOUT' || cause.name === 'TimeoutError'
}
