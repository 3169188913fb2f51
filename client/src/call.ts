import { ApiError, type Problem } from './errors.ts'
import type { Server } from './server.ts'

/** The options of `fetch`, and `json` and `timeoutMs`. */
export interface CallInit extends Omit<RequestInit, 'method' | 'headers'> {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  /** A value that is sent as JSON instead of `body`. */
  readonly json?: unknown
  /** Timeout until the response headers arrive, in milliseconds; 60,000 by default. The body may take longer. */
  readonly timeoutMs?: number
}

/**
 * Sends one request to the server.
 * @throws ApiError unless the status is 2xx or 304; the reason of `signal` when the caller aborts
 */
export async function call(server: Server, path: string, init: CallInit = {}): Promise<Response> {
  const { json, timeoutMs = 60_000, headers, signal, method = 'GET', ...rest } = init
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(), timeoutMs)
  let response: Response
  try {
    response = await server.fetch(path, {
      ...rest,
      method,
      headers: {
        'X-CSRF': '1',
        ...(json !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(json !== undefined && { body: JSON.stringify(json) }),
      signal: signal ? AbortSignal.any([signal, late.signal]) : late.signal,
    })
  } catch (error) {
    signal?.throwIfAborted()
    throw new ApiError(method, path, undefined, undefined, error)
  } finally {
    clearTimeout(timer)
  }
  if (response.ok || response.status === 304) return response
  throw new ApiError(method, path, response, await problemOf(response))
}

async function problemOf(response: Response): Promise<Problem | undefined> {
  if (!response.headers.get('content-type')?.startsWith('application/problem+json')) return undefined
  // A body that is cut off or malformed counts as no problem.
  return response.json().catch(() => undefined)
}
