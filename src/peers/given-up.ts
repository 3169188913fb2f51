import type { Socket } from 'node:net'
import { errors } from 'undici'

/**
 * Resets a connection on which undici gives up a request. The kernel goes on with one that is merely closed: once the network works
 * again, it would deliver an order whose outcome the page has long been told to be unknown.
 * @param user of the connection: TLS over it, or itself
 */
export function resetWhenGivenUp(wire: Socket, user = wire): void {
  const destroy = wire.destroy.bind(wire)
  let isReset = false
  let given: Error | undefined
  wire.destroy = (error) => {
    given ??= error
    const reason = given ?? user.errored ?? undefined
    if (!isReset && reason !== undefined && !isIdleClose(reason)) {
      isReset = true
      wire.resetAndDestroy()
    }
    return destroy(given)
  }
}

/** Whether undici closes a connection that no request uses. */
function isIdleClose(error: Error): boolean {
  return error instanceof errors.InformationalError && error.message !== 'aborted'
}
