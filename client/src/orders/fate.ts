import type { SentOrder } from '../core/base/order-shape.ts'
import type { SocketError } from '../core/base/errors.ts'
import { Search, type Fate } from './search.ts'

/** Options of {@link fate}. */
export interface FateOptions {
  /** Stops looking. */
  readonly signal?: AbortSignal | undefined
}

const searches = new WeakMap<SentOrder, Promise<Fate>>()
/**
 * Resolves when all searches on an account are over. The trading service allows few reads a minute, so there is one at a time. An
 * account that cannot be reached keeps no other one waiting.
 */
const last = new WeakMap<SentOrder['account'], Promise<unknown>>()

/**
 * Finds out what became of a `buy` whose outcome is unknown: looks at the account, and listens to its transactions until the
 * connection has been open for 15 seconds. Waits for a connection, and for the fate of earlier orders on the account. An equal order
 * from another tab or device at the same moment cannot be told apart.
 * ```ts
 * const found = await fate(error)
 * if (found.is === 'made') showContract(found.contract.contract_id)
 * ```
 * @throws SocketError if the account cannot be read: call it again later. TypeError unless the error is that of a `buy` which was
 * sent. The reason of `signal` when you abort
 */
export function fate(error: SocketError, { signal }: FateOptions = {}): Promise<Fate> {
  const { order } = error
  if (!order) return Promise.reject(new TypeError('only a buy whose outcome is unknown has a fate to find out'))
  const running = searches.get(order)
  if (running && !signal) return running
  const before = last.get(order.account) ?? Promise.resolve()
  const search = turnAfter(before, signal).then(() => {
    signal?.throwIfAborted()
    return new Search(order, error, signal).run()
  })
  // A search that was stopped while it waited may be over before those that it waited for.
  last.set(order.account, Promise.allSettled([before, search]))
  // Nobody else may be stopped by this signal.
  if (!signal) searches.set(order, search)
  const forget = ({ is }: { is?: Fate['is'] }): void => {
    // What was made stays so. Anything else may change, and a later call looks again.
    if (is !== 'made' && searches.get(order) === search) searches.delete(order)
  }
  search.then(forget, forget)
  return search
}

/** Resolves with `before`, which never rejects. Rejects with the reason of `signal` as soon as that is aborted. */
function turnAfter(before: Promise<unknown>, signal: AbortSignal | undefined): Promise<unknown> {
  if (!signal) return before
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error)
    if (signal.aborted) return stop()
    signal.addEventListener('abort', stop)
    void before.then(resolve).then(() => signal.removeEventListener('abort', stop))
  })
}
