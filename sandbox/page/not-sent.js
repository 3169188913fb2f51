/** What the page says of an order that was not sent and never will be. */
import { isOffline } from './connection.js'
import { dismiss, notice } from './notices.js'

/** The area of messages about orders. */
export const AREA = 'trade-messages'

/** @param done - `bought` or `sold` */
export function notSent(done) {
  const why = isOffline() ? 'your device is offline' : 'the connection is interrupted'
  const text = `Nothing was ${done}: your order was not sent, because ${why}.`
  notice({ key: 'not-sent', kind: 'error', text, area: AREA })
}

/** Once there is a connection again, only this is left to say. */
export function sentNothing() {
  if (!dismiss('not-sent')) return
  const text = 'The connection is back. Your order from before was not sent, and never will be.'
  notice({ key: 'not-sent', text, brief: true, area: AREA })
}
