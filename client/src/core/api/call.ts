import { ApiError, type Problem } from '../base/errors.ts'
import type { Server } from '../server.ts'

/** The default of {@link CallInit.timeoutMs}. */
export const TIMEOUT_MS = 60_000
/** The maximum delay of a timer. A longer one would end at once. */
export const MAX_TIMEOUT_MS = 2_147_483_647

/** The options of `fetch`, and `json` and `timeoutMs`. */
export interface CallInit extends Omit<RequestInit, 'method' | 'headers' | 'signal'> {
  readonly method?: string
  readonly headers?: RequestInit['headers'] | undefined
  readonly signal?: AbortSignal | null | undefined
  /** A value that is sent as JSON instead of `body`. */
  readonly json?: unknown
  /**
   * Timeout until the response headers arrive, in milliseconds; 60,000 by default. The body may take longer, but not that of an order
   * of `once`.
   */
  readonly timeoutMs?: number | undefined
}

/**
 * Sends one request to the server.
 * @param isWhole true to wait for the whole body, too: it may stall without an error
 * @throws ApiError unless the status is 2xx or 304, and if a proxy answers anything but a GET with a page; with the code `aborted`
 * when the caller aborts anything but a GET; the reason of `signal` when he aborts a GET, or before anything was sent
 */
export async function call(
  server: Server,
  path: string,
  init: Omit<CallInit, 'json'> = {},
  isWhole?: boolean,
): Promise<Response> {
  const { timeoutMs = TIMEOUT_MS, headers, signal, method = 'GET', ...rest } = init
  signal?.throwIfAborted()
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(), Math.min(timeoutMs, MAX_TIMEOUT_MS))
  let response: Response | undefined
  let problem: Problem | undefined
  let cause: unknown
  let own: 'aborted' | undefined
  try {
    const arrived = await server.fetch(path, {
      // The server redirects no such call. A proxy may, and the page behind it would count as the response of the server.
      ...(method !== 'GET' && { redirect: 'manual' }),
      ...rest,
      method,
      headers: { 'x-csrf': '1', ...Object.fromEntries(new Headers(headers)) },
      signal: signal ? AbortSignal.any([signal, late.signal]) : late.signal,
    })
    const { ok, status, headers: told } = arrived
    // The server adds an X-Request-Id to all its responses: a page without one is that of a proxy, such as of its own login.
    const isPage = method !== 'GET' && !told.has('x-request-id') && /html/i.test(told.get('content-type') ?? '')
    if (!isPage && (ok || status === 304)) {
      if (isWhole) await arrived.clone().arrayBuffer()
      return arrived
    }
    response = arrived
    problem = await problemOf(response)
  } catch (error) {
    cause = error
  } finally {
    clearTimeout(timer)
  }
  // An answer that has arrived whole counts, whatever the page has done meanwhile.
  if (signal?.aborted && cause !== undefined) {
    cause = signal.reason
    if (method === 'GET') throw cause
    own = 'aborted'
  }
  throw new ApiError(method, path, response, problem, cause, own)
}

/**
 * The problem in a response, if it is one of the server. The body can still be read.
 * @throws if the body is cut off or malformed, which counts as no problem
 */
export async function problemOf(response: Response): Promise<Problem | undefined> {
  if (!response.headers.get('content-type')?.startsWith('application/problem+json')) return undefined
  const problem = (await response.clone().json()) as Problem | null
  // The trading service or a proxy may send problems of its own, whose codes may be any, but whose types are others.
  return problem?.type === `/problems/${problem?.code}` ? problem : undefined
}
