import type { Paths } from './catalog.ts'
import { ApiError } from './errors.ts'
import { call, type CallInit } from './call.ts'
import type { Server } from './server.ts'

/** Paths that a deployment adds, such as that of the partner overview. Extend it by declaration merging. */
// oxlint-disable-next-line typescript/no-empty-object-type -- pages extend it
export interface MorePaths {}

type Method = keyof Paths
type PathOf<M extends Method> = Paths[M] | (M extends keyof MorePaths ? MorePaths[M] & string : never)
/** A path of a method, with or without a query. */
export type ApiPath<M extends Method = Method> = PathOf<M> | `${PathOf<M>}?${string}`

/** A response whose JSON has the type that the caller gives it. */
export interface ApiResponse extends Omit<Response, 'json'> {
  json<T = unknown>(): Promise<T>
}

/** What a call takes beside the path: everything that `fetch` does, and `json`, `timeoutMs`, `idempotencyKey`. */
export interface ApiInit<M extends Method> extends CallInit {
  readonly method?: M
  /** The `Idempotency-Key` of the call; true makes a new one. */
  readonly idempotencyKey?: string | true
}

/**
 * Calls the trading service through the server. `path` is that of the trading service, without `/api`.
 * @throws ApiError unless the status is 2xx or 304; the signal's reason when the caller aborted
 */
export interface Api {
  (path: ApiPath<'GET'>, init?: ApiInit<'GET'>): Promise<ApiResponse>
  <M extends Exclude<Method, 'GET'>>(
    path: ApiPath<M>,
    init: ApiInit<M> & { readonly method: M },
  ): Promise<ApiResponse>
}

/** How long a call waits before it is repeated: at least, and how much more at random. */
const PAUSE_MS = 500
const MAX_PAUSE_MS = 5000

/** @param onAnonymous told when a call was refused for lack of a session */
export function apiOf(server: Server, onAnonymous: () => void): Api {
  return async (path: string, { idempotencyKey: key, headers, ...init }: ApiInit<Method> = {}) => {
    const keyHeader = key && { 'Idempotency-Key': key === true ? newKey() : key }
    const ask = (): Promise<Response> =>
      call(server, `/api${path}`, { ...init, headers: { ...headers, ...keyHeader } })
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      const code = error.problem?.code ?? ''
      if (code === 'login_required' || code === 'session_expired') onAnonymous()
      const pauseMs = repeatableAfterMs(error, init.method)
      // A stream has been read: it cannot be sent again.
      if (pauseMs === undefined || init.body instanceof ReadableStream) throw error
      await pause(pauseMs, init.signal)
      return ask()
    }
  }
}

/** After how long a call that failed is made again, once; undefined: never, since it may have been executed. */
function repeatableAfterMs({ problem, retryAfter = 0 }: ApiError, method = 'GET'): number | undefined {
  const code = problem?.code
  if (code === 'credential_renewed') return 0
  const isRepeatable = code === 'upstream_unreachable' || (code === 'shutting_down' && method === 'GET')
  const waitMs = retryAfter * 1000
  return isRepeatable && waitMs <= MAX_PAUSE_MS ? Math.max(PAUSE_MS * (1 + Math.random()), waitMs) : undefined
}

function pause(ms: number, signal: AbortSignal | null | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    signal?.addEventListener('abort', () => {
      clearTimeout(timer)
      reject(signal.reason as Error)
    })
  })
}

/** Not `crypto.randomUUID`, which a page without TLS lacks. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join('-')
}
