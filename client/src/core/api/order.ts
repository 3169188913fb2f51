import { elapsedMs, sleptDuring } from '../base/clock.ts'
import { ApiError, SocketError } from '../base/errors.ts'
import { MAX_LATE_MS } from '../base/times.ts'
import type { Core } from '../core.ts'
import { TIMEOUT_MS, type CallInit } from './call.ts'

/** How to find out whether an order was made. */
export interface OnceOptions {
  /**
   * Looks whether the order was made, for example in a list, or asks the user. Called only when the outcome is unknown. Do not
   * guess: a wrong `false` may make the order twice. Without it, `fate` finds out what became of a `buy`, and the server what
   * became of a call with the key.
   */
  readonly isMade?: ((error: ApiError | SocketError) => boolean | Promise<boolean>) | undefined
  /**
   * Keeps the key under this name in the `sessionStorage`, so that the same order after a reload gets the same key, and is not
   * made twice. Only an order with `json`, a string as body, or no body is kept.
   */
  readonly remember?: string | undefined
}

/** A call of the API, as far as it is known before its key. */
export interface ApiCall extends CallInit {
  readonly method: string
  readonly path: string
}

/** What `once` and the calls that carry its key tell each other of an order. */
interface Order {
  /** Chooses what is sent in place of the key of `once`, or refuses the call by rejecting. */
  readonly chooseKey: ((core: Core, call: ApiCall, key: string) => Promise<string>) | undefined
  /** True once a call with the key has begun. */
  isSent?: true
  /** Whether such a call was answered or lost, by its last word: no error of anything else says that the order was not made. */
  mayBeMade?: boolean
  /** A call without the key that began meanwhile. It cannot be told whether it belongs to the order. */
  other?: string
  /** Whether the call that has failed with this error is to be sent once more: not if the machine slept before it failed. */
  readonly mayRepeat: (error: ApiError, hasSlept: boolean) => Promise<boolean>
}

/** The orders that are being made, by their key: a page passes nothing else on from `once` to its calls. */
const orders = new Map<string | undefined, Order>()

/** Notes a call that may change something. @returns the order that has given it its key, if any; all others learn of it */
export function noteCall(key: string | undefined, call: string): Order | undefined {
  for (const [own, order] of orders) {
    if (own === key) order.isSent = true
    else order.other ??= call
  }
  return orders.get(key)
}

/**
 * Sends a call, and once more if it has the key of an order, its answer is lost, and the order was not made. That of an order must
 * arrive whole.
 */
export async function sendInOrder(
  core: Core,
  call: ApiCall,
  key: string | undefined,
  send: (key: string | undefined, isWhole?: boolean) => Promise<Response>,
): Promise<Response> {
  const { method, path, body, timeoutMs = TIMEOUT_MS } = call
  const order = method === 'GET' ? orders.get(key) : noteCall(key, `${method} ${path}`)
  const sendChosen = async (isWhole?: boolean): Promise<Response> =>
    send(key && order?.chooseKey ? await order.chooseKey(core, call, key) : key, isWhole)
  if (!order || method === 'GET') return sendChosen()
  for (;;) {
    const askedAt = Date.now()
    try {
      const response = await sendChosen(true)
      order.mayBeMade = true
      return response
    } catch (error) {
      const isOurs = error instanceof ApiError
      const hasSlept = elapsedMs(askedAt) > timeoutMs + MAX_LATE_MS
      order.mayBeMade = !isOurs || error.outcome === 'unknown'
      // The first attempt has consumed a stream, so only `makeOnce` can make the order again: unless it hears of the sleep.
      const isSendable = isOurs && (hasSlept || !(body instanceof ReadableStream))
      if (!isSendable || !(await order.mayRepeat(error, hasSlept))) throw error
    }
  }
}

/** Makes an order as `once` does. */
export async function makeOnce<Answer>(
  make: (key: string) => Promise<Answer>,
  isMade: NonNullable<OnceOptions['isMade']>,
  chooseKey?: Order['chooseKey'],
): Promise<Answer | undefined> {
  const key = newKey()
  const unknown = (cause: unknown): ApiError => new ApiError('order', key, undefined, undefined, cause)
  let mayRepeat = true
  let isFound = false
  let failure: ApiError | undefined
  /** Returns whether the order must not be repeated: it was made, or the machine slept meanwhile. */
  const find = async (error: ApiError | SocketError): Promise<boolean> => {
    try {
      // A user who is asked by `confirm()` may take any time, in which the page stands still.
      const answer = isMade(error)
      const hasSlept = await sleptDuring(answer)
      return (isFound = await answer) || hasSlept
    } catch (cause) {
      throw (failure = unknown(cause))
    }
  }
  const own: Order = {
    chooseKey,
    async mayRepeat(error, hasSlept) {
      // A problem is the last word of the server on this key.
      if (!mayRepeat || error.outcome !== 'unknown' || error.code) return false
      mayRepeat = false
      return !hasSlept && !(await find(error))
    },
  }
  orders.set(key, own)
  try {
    for (;;) {
      try {
        return await make(key)
      } catch (reason) {
        if (failure) throw failure
        if (isFound) return undefined
        const isOurs = reason instanceof ApiError || reason instanceof SocketError
        // Any other error, and one after the answer, such as that of the page when it reads it, says nothing of the order.
        const error = isOurs && (reason.outcome === 'unknown' || !own.mayBeMade) ? reason : unknown(reason)
        if (error.outcome !== 'unknown') throw error
        const isOver = await find(error)
        if (isFound) return undefined
        // A command on a socket has no key, and its error always a code.
        if (error.code || isOver || !mayRepeat) throw error
        mayRepeat = false
        const forgotten = own.isSent ? own.other && `${own.other} was sent without` : 'nothing was sent with'
        if (forgotten) throw Object.assign(error, { detail: `not repeated: ${forgotten} the idempotencyKey of once()` })
      }
    }
  } finally {
    // A call that the page has not waited for is not repeated later.
    mayRepeat = false
    orders.delete(key)
  }
}

/** A new `Idempotency-Key`. A page without TLS has no `crypto.randomUUID`. */
export function newKey(): string {
  return crypto.getRandomValues(new Uint32Array(4)).join('-')
}
