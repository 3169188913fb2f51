import type { Requests, Responses } from '../generated/catalog.ts'
import { elapsedMs } from '../base/clock.ts'
import { ApiError } from '../base/errors.ts'
import { withIds, writeJson } from '../base/json.ts'
import { isOnline } from '../base/page.ts'
import { MAX_LATE_MS, MAX_POLLS } from '../base/times.ts'
import type { Core } from '../core.ts'
import { call, TIMEOUT_MS, type CallInit } from './call.ts'
import type { KeyUse } from './key-use.ts'
import { newKey, sendInOrder, type ApiCall } from './order.ts'

/**
 * Paths that only some deployments have, such as the partner overview. Add yours by declaration merging:
 * ```ts
 * declare module 'trading-bff-client' {
 *   interface MorePaths { GET: '/partners/analytics/v1/overview' }
 * }
 * ```
 */
// oxlint-disable-next-line typescript/no-empty-object-type -- pages extend it
export interface MorePaths {}

type Method = keyof Responses
type PathOf<M extends Method> =
  | (keyof Responses[M] & string)
  | (M extends keyof MorePaths ? MorePaths[M] & string : never)
/** A path of the API for a method, with or without a query. */
export type ApiPath<M extends Method = Method> = PathOf<M> | `${PathOf<M>}?${string}`

type WithoutQuery<P> = P extends `${infer Path}?${string}` ? Path : P
/** The JSON in the response of a call, as far as it is publicly documented. */
export type ResponseBody<M extends Method, P extends ApiPath<M>> =
  WithoutQuery<P> extends keyof Responses[M] ? Responses[M][WithoutQuery<P>] : unknown

/** The JSON that a call sends, as far as it is publicly documented. */
export type RequestBody<M extends Method, P extends ApiPath<M>> = M extends keyof Requests
  ? WithoutQuery<P> extends keyof Requests[M]
    ? Requests[M][WithoutQuery<P>]
    : unknown
  : unknown

/**
 * A `Response` whose `json()` returns the publicly documented type, or the type that you give it. The package does not
 * check the body against it.
 */
export interface ApiResponse<Body = unknown> extends Omit<Response, 'json'> {
  json<T = Body>(): Promise<T>
}

/** The options of any call. */
interface AnyInit extends CallInit {
  /**
   * The `Idempotency-Key` header of the call; `true` makes a new key. The server sends a POST or PATCH with the same key at
   * most once, and answers its repetition with the first response.
   */
  readonly idempotencyKey?: string | true | undefined
}

/** The options of `fetch`, and `json`, `timeoutMs` and `idempotencyKey`. */
export interface ApiInit<M extends Method, P extends ApiPath<M> = ApiPath<M>> extends AnyInit {
  readonly method?: M
  /** A value that is sent as JSON instead of `body`. The package does not check it against its type. */
  readonly json?: RequestBody<M, P> | undefined
}

/**
 * Calls the trading service through the server. `path` is a path of the trading service, without `/api`. The call
 * carries the session cookie and `X-CSRF`. It is repeated once after `credential_renewed` and `upstream_unreachable`,
 * which mean that it was not executed, and a GET also after `shutting_down`. With an `idempotencyKey` it is also repeated
 * after `session_store_unavailable`, and after `idempotency_in_progress` until the running call has a response. A call
 * other than a GET is repeated only while the session is still the one in which this page first sent it, or its key.
 * ```ts
 * const response = await client.api('/trading/v1/options/accounts')
 * const { data } = await response.json()
 * ```
 * @throws ApiError unless the status is 2xx or 304, with the code `not_sent` if the browser reports that it is offline when
 * a call other than a GET is made, and `aborted` when you abort one that may have been sent; the reason of `signal` when you abort
 * any other
 */
export interface Api {
  <P extends ApiPath<'GET'>>(path: P, init?: ApiInit<'GET'>): Promise<ApiResponse<ResponseBody<'GET', P>>>
  <M extends Exclude<Method, 'GET'>, P extends ApiPath<M>>(
    path: P,
    init: ApiInit<M, P> & { readonly method: M },
  ): Promise<ApiResponse<ResponseBody<M, P>>>
}

/** Calls the API. A refusal because there is no session makes the store confirm that. */
export function apiOf(core: Core): Api {
  return async (path: string, { idempotencyKey, ...init }: AnyInit = {}) => {
    const { method = 'GET' } = init
    const given = idempotencyKey === true ? newKey() : idempotencyKey
    const apiCall = { ...init, method, path }
    return withIds(await sendInOrder(core, apiCall, given, (...how) => sendWithKey(core, apiCall, ...how)))
  }
}

/** Sends a call, and again where that is certain not to execute it twice. */
async function sendWithKey(core: Core, given: ApiCall, key: string | undefined, isWhole?: boolean): Promise<Response> {
  const { path, headers, json, ...init } = given
  const { method, signal, timeoutMs = TIMEOUT_MS } = init
  const body = json !== undefined && { body: writeJson(json) }
  const allHeaders = {
    ...(body && { 'content-type': 'application/json' }),
    // In small letters, as above: two names of one header would send both values.
    ...Object.fromEntries(new Headers(headers)),
    ...(key !== undefined && { 'idempotency-key': key }),
  }
  const use = method === 'GET' ? undefined : core.useKey(key)
  const mustNotRepeat = async (): Promise<boolean | undefined> => {
    const isOther = use && !(await use.isSameSession())
    if (!signal?.aborted) return isOther
    // An attempt before this one may have been executed.
    if (use?.mayBeExecuted) throw new ApiError(method, path, undefined, undefined, signal.reason, 'aborted')
    use?.forget()
    throw signal.reason
  }
  if (use?.mayBeExecuted && (await mustNotRepeat())) {
    throw new ApiError(method, path, undefined, undefined, new Error('the key belongs to another session'))
  }
  let mayRepeat = true
  for (let polls = 0; ;) {
    const askedAt = Date.now()
    try {
      if (method !== 'GET' && !isOnline() && !signal?.aborted) {
        throw new ApiError(method, path, undefined, undefined, undefined, 'not_sent')
      }
      return await call(core.server, `/api${path}`, { ...init, ...body, headers: allHeaders }, isWhole)
    } catch (error) {
      // Nothing was sent.
      if (!(error instanceof ApiError)) {
        use?.forget()
        throw error
      }
      const code = error.problem?.code
      if (code === 'login_required' || code === 'session_expired') void core.store.confirm()
      const isInProgress = code === 'idempotency_in_progress'
      if (use && isInProgress) use.mayBeExecuted = true
      const isRunning = isInProgress && polls++ < MAX_POLLS
      const pauseMs = isRunning || mayRepeat ? repeatableAfterMs(error, method, key) : undefined
      // The first attempt has consumed a stream, so it cannot be sent again.
      if (pauseMs !== undefined && !(init.body instanceof ReadableStream)) {
        mayRepeat &&= isRunning
        const failedAt = Date.now()
        await pause(pauseMs, signal)
        const mustNot = await mustNotRepeat()
        // After a machine has slept, also before it read the response, the user may not want the order any more.
        const isLate = elapsedMs(failedAt) > MAX_LATE_MS || elapsedMs(askedAt) > timeoutMs + MAX_LATE_MS
        if (!mustNot && (method === 'GET' || !isLate)) continue
      }
      throw lastWord(error, method, path, use)
    }
  }
}

/** The error of a call that is not repeated. A problem is about the last attempt, and says nothing about one before. */
function lastWord(error: ApiError, method: string, path: string, use?: KeyUse): ApiError {
  const { problem, outcome, response } = error
  if (!use || outcome) return error
  if (!use.mayBeExecuted) use.forget()
  // An attempt before this one may have been executed, even if this one was refused or not sent. The trading service alone has
  // the last word: its refusal comes through the server, which adds an X-Request-Id. That of a proxy has none.
  else if (error.code || !response?.headers.has('x-request-id')) {
    return new ApiError(method, path, response, problem && { ...problem, outcome: 'unknown' }, error)
  }
  return error
}

/** The pause before a failed call is repeated; undefined if it must not be repeated, because it may have been executed. */
function repeatableAfterMs({ problem, retryAfter = 0 }: ApiError, method: string, key?: string): number | undefined {
  const code = problem?.code
  if (code === 'credential_renewed') return 0
  const isRepeatable =
    code === 'upstream_unreachable' ||
    (code === 'shutting_down' && method === 'GET') ||
    // With a key, these mean that nothing was sent this time.
    (key && (code === 'idempotency_in_progress' || code === 'session_store_unavailable'))
  const waitMs = retryAfter * 1000
  // Not if the server asks for a longer pause.
  return isRepeatable && waitMs <= 5000 ? Math.max(500 * (1 + Math.random()), waitMs) : undefined
}

/** Ends early when the caller aborts. */
function pause(ms: number, signal: AbortSignal | null | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal?.addEventListener('abort', end)
  })
}
