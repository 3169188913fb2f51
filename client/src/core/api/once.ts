import { elapsedMs } from '../base/clock.ts'
import { loaded, SocketError } from '../base/errors.ts'
import { MAX_LATE_MS } from '../base/times.ts'
import { makeOnce, type OnceOptions } from './order.ts'

/** The response of a call. */
type AnyResponse = Omit<Response, 'json'>

/** Refuses an order that takes no key and returns a response: its call has another key, or none. A command on a socket has no key. */
type Keyed<MakesOrder extends (idempotencyKey: string) => unknown> =
  Parameters<MakesOrder> extends [] ? Unless<Awaited<ReturnType<MakesOrder>>, AnyResponse> : unknown
type Unless<Answer, Other> = [Answer] extends [never] ? unknown : [Answer] extends [Other] ? never : unknown

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
  const { isMade, remember } = options
  if (isMade && !remember) return makeOnce(order, isMade)
  const askedAt = Date.now()
  // oxlint-disable-next-line no-restricted-imports -- loaded only when a page uses it
  const { orderOnce } = await loaded(import('../../orders/orders.ts'))
  // After a machine has slept, the user may not want the order any more.
  if (elapsedMs(askedAt) > MAX_LATE_MS) throw new SocketError('not_loaded', 'loaded too late')
  return orderOnce(makeOnce, order, options)
}
