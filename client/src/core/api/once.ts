import { ApiError, loaded, SocketError } from '../base/errors.ts'
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

/**
 * Makes an order at most once, and finds out what became of it when no answer arrives. `order` gets a new
 * `Idempotency-Key`, must send it, and does nothing else but read the answer. If the answer does not arrive whole and the
 * order was not made, it is called once more with the same key.
 * ```ts
 * const response = await once((idempotencyKey) => client.api(path, { method: 'POST', json, idempotencyKey }), {
 *   isMade: () => confirm('Is the transfer in the list?'),
 * })
 * ```
 * @returns the answer; undefined if the order was made, and its answer is lost
 * @throws the error of the order. With the outcome `unknown` it may still be made, and the key is lost: look before you
 * order again. An error that is neither an ApiError nor a SocketError, and one of `isMade`, is the `cause` of an ApiError.
 */
export async function once<Answer>(
  order: (idempotencyKey: string) => Promise<Answer>,
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
  for (let mayRepeat = true; ; mayRepeat = false) {
    try {
      return await order(key)
    } catch (reason) {
      // Any other error, such as that of a body that breaks off, comes from reading the answer.
      const error = reason instanceof ApiError || reason instanceof SocketError ? reason : unknown(reason)
      if (error.outcome !== 'unknown') throw error
      try {
        if (await isMade(error)) return undefined
      } catch (cause) {
        throw unknown(cause)
      }
      // A problem is the last word of the server on this key, and a command on a socket has no key.
      if (!mayRepeat || error instanceof SocketError || error.problem) throw error
    }
  }
}

/** A new `Idempotency-Key`. A page without TLS has no `crypto.randomUUID`. */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join('-')
}
