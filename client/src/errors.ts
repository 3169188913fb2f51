import type { CloseCode, ProblemCode } from './catalog.ts'

/** A problem of the server (RFC 9457), as docs/reference.md describes it. */
export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly code: ProblemCode | (string & {})
  readonly request_id: string
  /** With `validation_failed`. */
  readonly errors?: readonly { readonly field: string; readonly message: string }[]
  /** The call may have been executed. */
  readonly outcome?: 'unknown'
  /** With `login_required` and `session_expired`: where to log in. */
  readonly login_url?: string
}

/** A call that did not succeed. */
export class ApiError extends Error {
  /** The status of the response; 0 when none came. */
  readonly status: number
  /** What the server says; undefined for a response of the trading service's own, of a proxy, or none at all. */
  readonly problem: Problem | undefined
  /** The call may have been executed: look before you repeat it. Only for methods other than GET. */
  readonly outcome: 'unknown' | undefined
  /** Seconds after which to try again, where the server says so. */
  readonly retryAfter: number | undefined
  /** The response itself. Its body is unread unless there is a `problem`. */
  readonly response: Response | undefined

  constructor(method: string, path: string, response?: Response, problem?: Problem, cause?: unknown) {
    const status = response?.status ?? 0
    super(`${method} ${path}: ${problem?.code ?? (status || 'no response')}`, { cause })
    this.name = 'ApiError'
    this.status = status
    this.problem = problem
    // Without a problem, a 5xx is a proxy's own, and nobody knows how far the call came.
    const isUnclear = !problem && method !== 'GET' && (status === 0 || status >= 500)
    this.outcome = isUnclear ? 'unknown' : problem?.outcome
    const seconds = Number(response?.headers.get('retry-after') ?? NaN)
    this.retryAfter = seconds >= 0 ? seconds : undefined
    this.response = response
  }
}

/** What the package itself says about a message; any other code is the trading service's own. */
export type SocketErrorCode =
  /** The command was not sent, and will not be. */
  | 'not_sent'
  /** No response came in time. */
  | 'timeout'
  /** The caller aborted after the command was sent. */
  | 'aborted'
  /** The connection went before the response came. */
  | 'connection_lost'
  /** The connection has ended for good: see `closeCode`. */
  | 'ended'
  /** The socket was closed by its owner. */
  | 'closed'

/** A message that did not succeed. */
export class SocketError extends Error {
  readonly code: SocketErrorCode | (string & {})
  /** The command was sent, and nobody knows what became of it: look at the open contracts. */
  readonly outcome: 'unknown' | undefined
  /** The trading service's response, where it refused. */
  readonly answer: Readonly<Record<string, unknown>> | undefined
  /** Why the connection ended. */
  readonly closeCode: CloseCode | (number & {}) | undefined

  constructor(
    code: SocketError['code'],
    message: string,
    more: Partial<Pick<SocketError, 'outcome' | 'answer' | 'closeCode' | 'cause'>> = {},
  ) {
    super(message, { cause: more.cause })
    this.name = 'SocketError'
    this.code = code
    this.outcome = more.outcome
    this.answer = more.answer
    this.closeCode = more.closeCode
  }
}

/** Hands the error of a listener to the page's error handlers, without disturbing who called the listener. */
export function report(error: unknown): void {
  // Only a page has it; nothing is listened to while a server renders one.
  const { reportError: reportToPage } = globalThis as Partial<typeof globalThis>
  reportToPage?.(error)
}

/** Calls every listener, also those after one that throws. */
export function notify<T extends unknown[]>(listeners: Iterable<(...values: T) => void>, ...values: T): void {
  for (const listener of [...listeners]) {
    try {
      listener(...values)
    } catch (error) {
      report(error)
    }
  }
}
