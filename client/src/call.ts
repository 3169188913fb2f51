import { ApiError, type Problem } from './errors.ts'
import type { Server } from './server.ts'

/** A request as `fetch` takes it, and a little more. */
export interface CallInit extends Omit<RequestInit, 'method' | 'headers'> {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON, in place of `body`. */
  readonly json?: unknown
  /** Longest wait for the headers of the response; 60,000 unless given. */
  readonly timeoutMs?: number
}

/**
 * Calls the server once.
 * @throws ApiError unless the status is 2xx or 304; the signal's reason when the caller aborted
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
  // A body that breaks off tells nothing.
  return response.json().catch(() => undefined)
}
