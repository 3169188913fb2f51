import { ApiError, loaded, SocketError } from '../base/errors.ts'
import type { CallInit } from './call.ts'
import { keyChoices } from './key-choice.ts'

/** How to find out whether an order was made. */
export interface OnceOptions {
  /**
   * Looks whether the order was made, for example in a list, or asks the user. Called only when the outcome is unknown. Do not
   * guess: a wrong `false` may make the order twice. Without it, `fate` finds out what became of a `buy`, and the server what
   * became of a call with the key.
   */
  readonly isMade?: (error: ApiError | SocketError) => boolean | Promise<boolean>
  /**
   * Keeps the key under this name in the `sessionStorage`, so that the same order after a reload gets the same key, and is not
   * made twice. Only an order with `json`, a string as body, or no body is kept.
   */
  readonly remember?: string
}

/** What the calls of `api` and the order that has given them its key tell each other. */
interface Order {
  /** True once a call with the key has begun. */
  isSent: boolean
  /** Whether such a call was answered or lost, by its last word: no error of anything else says that the order was not made. */
  mayBeMade: boolean
  /** A call without the key that began meanwhile. It cannot be told whether it belongs to the order. */
  other: string | undefined
  /** Whether the call that has failed with this error is to be sent once more. */
  readonly mayRepeat: (error: ApiError) => Promise<boolean>
}

/** The orders that are being made, by their key. */
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
  send: () => Promise<Response>,
  key: string | undefined,
  { method, path, signal, body }: CallInit & { readonly method: string; readonly path: string },
): Promise<Response> {
  const order = noteCall(key, `${method} ${path}`)
  if (!order) return send()
  for (;;) {
    try {
      const response = await send()
      const whole = response.clone().arrayBuffer()
      await whole.catch((cause: unknown) => {
        throw new ApiError(method, path, undefined, undefined, cause, signal?.aborted ? 'aborted' : undefined)
      })
      order.mayBeMade = true
      return response
    } catch (error) {
      // The first attempt has consumed a stream, so it cannot be sent again.
      const isSendable = error instanceof ApiError && !(body instanceof ReadableStream)
      order.mayBeMade = !(error instanceof ApiError) || error.outcome === 'unknown'
      if (!isSendable || !(await order.mayRepeat(error))) throw error
    }
  }
}

/** The response of a call. */
type AnyResponse = Omit<Response, 'json'>

/** Refuses an order that takes no key and returns a response: its call has another key, or none. A command on a socket has no key. */
type Keyed<MakesOrder extends (idempotencyKey: string) => unknown> =
  Parameters<MakesOrder> extends [] ? Unless<Awaited<ReturnType<MakesOrder>>, AnyResponse> : unknown
type Unless<Answer, Refused> = [Answer] extends [never] ? unknown : [Answer] extends [Refused] ? never : unknown

/**
 * Makes an order at most once, and finds out what became of it when no answer arrives. `order` gets a new `Idempotency-Key`, must
 * send it with its call, and does nothing else but read the answer. If the answer does not arrive whole and the order was not
 * made, the call is sent once more with the same key. A call that did not carry the key is never sent again.
 * ```ts
 * const response = await once((idempotencyKey) => client.api(path, { method: 'POST', json, idempotencyKey }), {
 *   isMade: () => confirm('Is the transfer in the list?'),
 * })
 * ```
 * @returns the answer; undefined if the order was made, and its answer is lost
 * @throws the error of the order. With the outcome `unknown` it may still be made, and the key is lost: look before you
 * order again. Its `detail` says if it was not repeated because it had forgotten the key. An error that is neither an ApiError nor
 * a SocketError, one of `isMade`, and one after the answer is the `cause` of an ApiError.
 */
export async function once<Answer, MakesOrder extends (idempotencyKey: string) => unknown = (key: string) => unknown>(
  order: ((idempotencyKey: string) => Promise<Answer>) & MakesOrder & Keyed<MakesOrder>,
  options: OnceOptions = {},
): Promise<Answer | undefined> {
  const { isMade } = options
  if (!isMade || options.remember) {
    // oxlint-disable-next-line no-restricted-imports -- loaded only when a page uses it
    const { orderOnce } = await loaded(import('../../orders/orders.ts'))
    return orderOnce(once, keyChoices, order, options)
  }
  const key = newKey()
  const unknown = (cause: unknown): ApiError => new ApiError('order', key, undefined, undefined, cause)
  let mayRepeat = true
  let isFound = false
  let failure: unknown
  const ask = async (error: ApiError | SocketError): Promise<boolean> => {
    try {
      return (isFound = await isMade(error))
    } catch (cause) {
      throw (failure = unknown(cause))
    }
  }
  const own: Order = {
    isSent: false,
    mayBeMade: false,
    other: undefined,
    async mayRepeat(error) {
      // A problem is the last word of the server on this key.
      if (!mayRepeat || error.outcome !== 'unknown' || error.code) return false
      mayRepeat = false
      return !(await ask(error))
    },
  }
  orders.set(key, own)
  try {
    for (;;) {
      try {
        return await order(key)
      } catch (reason) {
        if (failure !== undefined) throw failure
        if (isFound) return undefined
        const isOurs = reason instanceof ApiError || reason instanceof SocketError
        // Any other error, and one after the answer, such as that of the page when it reads it, says nothing of the order.
        const error = isOurs && (reason.outcome === 'unknown' || !own.mayBeMade) ? reason : unknown(reason)
        if (error.outcome !== 'unknown') throw error
        if (await ask(error)) return undefined
        // A command on a socket has no key.
        if (!mayRepeat || error instanceof SocketError || error.code) throw error
        mayRepeat = false
        const forgotten = own.isSent ? own.other && `${own.other} was sent without` : 'nothing was sent with'
        if (forgotten)
          throw Object.assign(error, { detail: `not repeated: ${forgotten} the idempotencyKey that once() gave` })
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
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join('-')
}
