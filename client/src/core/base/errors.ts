import type { CloseCode, ProblemCode } from '../generated/catalog.ts'
import type { SentOrder } from './order-shape.ts'

/** The body of an error of the server (RFC 9457, application/problem+json). */
export interface Problem {
  /** `/problems/` and the code: an address on the server that explains it. */
  readonly type: string
  /** Text for people, which may change. */
  readonly title: string
  readonly status: number
  /** Text for people, which may change. */
  readonly detail: string
  /** What happened. Decide by this. */
  readonly code: ProblemCode | (string & {})
  /** Name this when you report a fault. */
  readonly request_id: string
  /** The fields that are wrong; only with `validation_failed`. */
  readonly errors?: readonly { readonly field: string; readonly message: string }[]
  /** Set when the call may have been executed. */
  readonly outcome?: 'unknown'
  /** The address of the login; only with `login_required` and `session_expired`. */
  readonly login_url?: string
}

/** The codes of the package itself. */
type OwnCode = 'not_sent' | 'aborted'

/** The seconds of a `Retry-After` (RFC 9110 §10.2.3). A date is compared with that of the response, if the page may read it. */
function retryAfterOf(headers: Headers): number | undefined {
  const value = headers.get('retry-after') ?? ''
  if (/^\d{1,9}$/.test(value)) return Number(value)
  // Without a time of day it may be any text, of which a browser makes some date. The oldest of the three forms has no zone.
  if (!/\d:\d\d:\d\d/.test(value)) return undefined
  const now = Date.parse(headers.get('date') ?? '') || Date.now()
  const ms = Date.parse(value.replace(/( GMT)?$/, ' GMT')) - now
  return ms < Infinity ? Math.max(Math.ceil(ms / 1000), 0) : undefined
}

/**
 * A call of the server that failed. Decide by `problem.code`, and by `status` where there is no problem.
 * ```ts
 * if (error instanceof ApiError && error.problem?.code === 'login_required') client.login()
 * ```
 */
export class ApiError extends Error {
  /** The HTTP status; 0 if there was no response, or only a redirect, whose status browsers hide. */
  declare readonly status: number
  /**
   * The error as the server describes it. Undefined if there was no response, or if the response came unchanged from the
   * trading service or from a proxy.
   */
  declare readonly problem: Problem | undefined
  /**
   * The code of the problem; or `not_sent`: the call was not sent and never will be, because the browser is offline; or `aborted`:
   * you aborted it when it may have been sent, and `cause` is the reason of your signal.
   */
  declare readonly code: OwnCode | Problem['code'] | undefined
  /** Text for people, which may change: that of the problem, or why `once` did not repeat the call. */
  declare readonly detail: string | undefined
  /** Set when the call may have been executed: find out before you repeat it. Never set for a GET. */
  declare readonly outcome: 'unknown' | undefined
  /** How long to wait before the next attempt, in seconds, if the response says so. */
  declare readonly retryAfter: number | undefined
  /** The response, if there was one. Its body can be read. */
  declare readonly response: Response | undefined

  constructor(method: string, path: string, response?: Response, problem?: Problem, cause?: unknown, own?: OwnCode) {
    const status = response?.status ?? 0
    const code = own ?? problem?.code
    super(`${method} ${path}: ${code ?? (status || 'no response')}`, { cause })
    this.name = 'ApiError'
    // A 5xx or a redirect without a problem comes from a proxy, and a problem that has not arrived in full may be any, such
    // as outcome_unknown. So the server may or may not have executed the call.
    const isUnclear = !code && method !== 'GET' && (status < 400 || status >= 500 || cause !== undefined)
    Object.assign(this, {
      code,
      status,
      problem,
      outcome: isUnclear || own === 'aborted' ? 'unknown' : problem?.outcome,
      detail: problem?.detail,
      retryAfter: response && retryAfterOf(response.headers),
      response,
    })
  }
}

/** The codes of the package itself. Any other code of a {@link SocketError} comes from the trading service. */
export type SocketErrorCode =
  /** The command was not sent and never will be. The user may try again. */
  | 'not_sent'
  /** No reply arrived in time. */
  | 'timeout'
  /** You aborted after the command was sent, so its outcome is unknown. */
  | 'aborted'
  /** The connection was lost before the reply arrived. */
  | 'connection_lost'
  /** The connection closed and will not be opened again; `closeCode` says why. */
  | 'ended'
  /** You closed the socket. The outcome of a command that had been sent is unknown. */
  | 'closed'
  /** A part of the package, such as that of `series`, could not be loaded, or came too late for an order. Nothing was sent. */
  | 'not_loaded'

/**
 * A message on a socket that failed.
 * ```ts
 * if (error instanceof SocketError && error.outcome === 'unknown') showOpenContracts()
 * ```
 */
export class SocketError extends Error {
  /** A code of the package, or the code of the trading service's own error. */
  declare readonly code: SocketErrorCode | (string & {})
  /** Set when the command may have been executed: look at the open contracts, and never send it again unseen. */
  declare readonly outcome: 'unknown' | undefined
  /** The whole reply of the trading service, if it refused the message. */
  declare readonly reply: Readonly<Record<string, unknown>> | undefined
  /** The close code of the connection, if that is why the message failed. */
  declare readonly closeCode: CloseCode | (number & {}) | undefined
  /** The `buy` whose outcome is unknown, for `fate` of `trading-bff-client/orders`. */
  declare readonly order: SentOrder | undefined

  constructor(
    code: SocketError['code'],
    message: string,
    { cause, ...more }: Partial<Pick<SocketError, 'outcome' | 'reply' | 'closeCode' | 'order' | 'cause'>> = {},
  ) {
    super(message, { cause })
    this.name = 'SocketError'
    Object.assign(this, { code }, more)
  }
}

/** Waits for another entry of the package, which is loaded only when a page uses it. @throws SocketError `not_loaded` */
export function loaded<Entry>(entry: Promise<Entry>): Promise<Entry> {
  return entry.catch((cause: unknown) => {
    throw new SocketError('not_loaded', 'could not be loaded', { cause })
  })
}

/** What a page has to report errors. Only pages have it: Node.js lacks it, and so do some versions of jsdom. */
const page = globalThis as { reportError?: (error: unknown) => void }

/** Passes an error that nobody waits for to the page's error handlers, if there is a page. */
export function report(error: unknown): void {
  page.reportError?.(error)
}

/** Passes the exception of a listener to the page's error handlers instead of to the caller of the listener. It is never lost. */
function reportException(error: unknown): void {
  if (page.reportError) page.reportError(error)
  else
    setTimeout(() => {
      throw error
    })
}

/** Calls back for every listener that is still in the set when its turn comes, even after a call has thrown. */
export function notify<T>(listeners: ReadonlySet<T>, call: (listener: T) => void): void {
  for (const listener of [...listeners]) {
    try {
      if (listeners.has(listener)) call(listener)
    } catch (error) {
      reportException(error)
    }
  }
}
