/** How much of a request was written to a connection. */
export type Sent = 'nothing' | 'part' | 'whole'

/** Why no answer came (docs/reference.md, REST). */
export type NoResponse =
  /** No byte of the request was sent. */
  | { readonly is: 'unreachable'; readonly cause: Error }
  /** It was sent, at least in part, and the connection failed; `responseBegan` when some of an answer had come. */
  | { readonly is: 'lost'; readonly cause: Error; readonly responseBegan: boolean }
  /** It was sent, and no answer came in time. */
  | { readonly is: 'timeout'; readonly cause: Error }

/**
 * Alerts by which a server refuses a client for its certificate, or for having none (RFC 8446 §6.2). Under TLS 1.3 they
 * come after the request has been written, and before the server has read any of it.
 */
const REFUSED_IN_TLS =
  /^ERR_SSL_\w*ALERT_(?:CERTIFICATE_REQUIRED|BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|CERTIFICATE_(?:REVOKED|EXPIRED|UNKNOWN)|UNKNOWN_CA|ACCESS_DENIED|HANDSHAKE_FAILURE)$/

/** Names the failure of a request that got no answer. */
export function noResponse(cause: Error, sent: Sent, responseBegan: boolean): NoResponse {
  const isRefused = !responseBegan && REFUSED_IN_TLS.test(codeOf(cause))
  if (sent === 'nothing' || isRefused) return { is: 'unreachable', cause }
  return isTimeout(cause) ? { is: 'timeout', cause } : { is: 'lost', cause, responseBegan }
}

/** An answer that was no HTTP, or too long in its head, is one all the same. */
export function hasResponseBegun(cause: Error & { code?: string }): boolean {
  return cause.name === 'HTTPParserError' || cause.code === 'UND_ERR_HEADERS_OVERFLOW'
}

/** The code of an error (of Node, undici or OpenSSL), or its name: what may be said of it, since its text may hold a URL. */
export function codeOf(error: Error & { code?: unknown }): string {
  return typeof error.code === 'string' ? error.code : error.name
}

function isTimeout(cause: Error & { code?: string }): boolean {
  return cause.code === 'UND_ERR_HEADERS_TIMEOUT' || cause.name === 'TimeoutError'
}
