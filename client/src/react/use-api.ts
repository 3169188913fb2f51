import { useCallback, useEffect, useState } from 'react'
import type { ApiPath, ResponseBody } from '../core/api/api.ts'
import { MAX_TIMEOUT_MS } from '../core/api/call.ts'
import { jitter } from '../core/base/backoff.ts'
import { elapsedMs } from '../core/base/clock.ts'
import type { ApiError } from '../core/base/errors.ts'
import { onPage } from '../core/base/page.ts'
import type { Client } from '../core/create-client.ts'
import { useSessionKey } from './use-session.ts'

/** What a path of the API has returned. */
export interface ApiData<T> {
  /** The JSON of the latest response. It stays while the path is loaded again, and when that fails. */
  readonly data?: T | undefined
  /** Why the latest call failed, usually an `ApiError`. If the reason may pass, the path is called again. */
  readonly error?: Error | undefined
  /** True while a call is under way. */
  readonly isLoading: boolean
  /** Calls the path again. It is the same function in every render. */
  readonly reload: () => void
}

/** What the latest call has brought, and for what it was made. */
interface Found {
  readonly client?: Client
  readonly of?: string | undefined
  readonly round?: number
  readonly data?: unknown
  readonly error?: Error | undefined
  /** How many calls have failed in a row. */
  readonly failures?: number
}

const NOTHING: Found = {}
/** Each call is use of the session, which would never end for idleness: so many within eight minutes are enough. */
const MAX_FAILURES = 10

/**
 * Loads JSON with a GET, as soon as a user is logged in, and again when the path or the session changes. Then and when the component
 * is unmounted, a call that is under way is aborted. Nothing that was loaded in one session is shown in another.
 * ```tsx
 * const { data, error, isLoading, reload } = useApi(client, '/trading/v1/options/accounts')
 * ```
 * @param path a path of the trading service, with or without a query; undefined to load nothing
 */
export function useApi<P extends ApiPath<'GET'>>(client: Client, path: P | undefined): ApiData<ResponseBody<'GET', P>>
/** The same with a type of your own for the JSON. The package does not check it. */
export function useApi<T>(client: Client, path: ApiPath<'GET'> | undefined): ApiData<T>
export function useApi(client: Client, path: ApiPath<'GET'> | undefined): ApiData<unknown> {
  const session = useSessionKey(client, path !== undefined)
  const [found, set] = useState(NOTHING)
  const [round, setRound] = useState(0)
  const of = path === undefined || session === undefined ? undefined : `${path} ${session}`
  useEffect(() => {
    // A page that stays open after a logout does not keep the data of the user in its memory either.
    if (path === undefined || of === undefined) return void set(NOTHING)
    const leaving = new AbortController()
    const { signal } = leaving
    const show = (next: Pick<Found, 'data' | 'error'>): void => {
      if (signal.aborted) return
      set((before) => {
        const same = before.client === client && before.of === of ? before : NOTHING
        return { ...same, ...next, client, of, round, failures: next.error ? (same.failures ?? 0) + 1 : 0 }
      })
    }
    // StrictMode undoes the first effect at once. Its call would be aborted before it was of use, so none is made.
    const call = async (): Promise<void> => {
      if (signal.aborted) return
      const response = await client.api(path, { signal })
      show({ data: await response.json(), error: undefined })
    }
    queueMicrotask(() => void call().catch((error: Error) => show({ error })))
    return () => leaving.abort()
  }, [client, of, round])
  const reload = useCallback(() => setRound((before) => before + 1), [])
  const { data, error, failures = 0 } = found.client === client && found.of === of ? found : NOTHING
  const isLoading = of !== undefined && (found.client !== client || found.of !== of || found.round !== round)
  useEffect(
    () => (error && !isLoading ? untilItPasses(client, error, failures, reload) : undefined),
    [error, isLoading],
  )
  return { data, error, isLoading, reload }
}

/**
 * Calls again what failed for a reason that may pass: later and later, and when the network, the user or the server is back. A hidden
 * page waits for its user.
 * @returns a function that ends this; undefined for a refusal that would come again
 */
function untilItPasses(
  { session }: Client,
  { status = 0, retryAfter = 0 }: Partial<ApiError>,
  failures: number,
  call: () => void,
): (() => void) | undefined {
  // A 401 after which the session goes on may be that of the session before.
  if (/^4(?!01|29)/.test(`${status}`)) return undefined
  const failedAt = Date.now()
  const restMs = retryAfter * 1000
  const again = (): void => void (document.visibilityState !== 'hidden' && call())
  const soon = (): void => void (elapsedMs(failedAt) >= restMs && again())
  const waitMs = Math.min(restMs + jitter(failures - 1, Infinity), MAX_TIMEOUT_MS)
  const timer = failures < MAX_FAILURES ? setTimeout(again, waitMs) : undefined
  const leavePage = onPage((event) => void (/online|pageshow|visibility/.test(event) && soon()))
  let before = session.get().status
  const stop = session.subscribe(() => {
    const { status } = session.get()
    if (status === 'active' && before !== 'active') soon()
    before = status
  })
  return () => {
    clearTimeout(timer)
    leavePage()
    stop()
  }
}
