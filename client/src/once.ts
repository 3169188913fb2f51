import { ApiError, SocketError } from './errors.ts'

/** How to find out whether an order was made. */
export interface OnceOptions {
  /**
   * Looks whether the order was made, for example in a list, or asks the user. Called only when nobody knows. Do not guess: a
   * wrong `false` may make the order twice.
   */
  readonly isMade: () => boolean | Promise<boolean>
}

/**
 * Makes an order at most once, and finds out what became of it when no answer arrives. `order` gets a new
 * `Idempotency-Key` and must send it. If no response arrives and the order was not made, it is called once more with the
 * same key.
 * ```ts
 * const response = await once((idempotencyKey) => client.api(path, { method: 'POST', json, idempotencyKey }), {
 *   isMade: () => confirm('Is the transfer in the list?'),
 * })
 * ```
 * @returns the answer; undefined if the order was made, and its answer is lost
 * @throws the error of the order, if it was not made or was refused
 */
export async function once<Answer>(
  order: (idempotencyKey: string) => Promise<Answer>,
  { isMade }: OnceOptions,
): Promise<Answer | undefined> {
  const key = newKey()
  for (let mayRepeat = true; ; mayRepeat = false) {
    try {
      return await order(key)
    } catch (error) {
      const isApiError = error instanceof ApiError
      if (!(isApiError || error instanceof SocketError) || error.outcome !== 'unknown') throw error
      if (await isMade()) return undefined
      // A problem is the last word of the server on this key, and a command on a socket has no key.
      if (!mayRepeat || !isApiError || error.problem) throw error
    }
  }
}

/** A new `Idempotency-Key`. A page without TLS has no `crypto.randomUUID`. */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join('-')
}
