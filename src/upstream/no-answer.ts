/** How much of a request was written to a connection. */
export type Sent = 'nothing' | 'part' | 'whole'

/** Why no answer came (CONTRACT: REST). */
export type NoAnswer =
  /** No byte of the request was sent. */
  | { readonly is: 'unreachable'; readonly cause: Error }
  /** It was sent, at least in part, and the connection failed; `answerBegan` when some of an answer had come. */
  | { readonly is: 'lost'; readonly cause: Error; readonly answerBegan: boolean }
  /** It was sent, and no answer came in time. */
  | { readonly is: 'timeout'; readonly cause: Error }

/** Names the failure of a request that got no answer. */
export function noAnswer(cause: Error, sent: Sent, answerBegan: boolean): NoAnswer {
  if (sent === 'nothing') return { is: 'unreachable', cause }
  return isTimeout(cause) ? { is: 'timeout', cause } : { is: 'lost', cause, answerBegan }
}

/** An answer that was no HTTP, or too long in its head, is one all the same. */
export function hasAnswerBegun(cause: Error & { code?: string }): boolean {
  return cause.name === 'HTTPParserError' || cause.code === 'UND_ERR_HEADERS_OVERFLOW'
}

function isTimeout(cause: Error & { code?: string }): boolean {
  return cause.code === 'UND_ERR_HEADERS_TIMEOUT' || cause.name === 'TimeoutError'
}
