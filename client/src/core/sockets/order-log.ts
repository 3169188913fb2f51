import { parseJson } from '../base/json.ts'
import type { OrderSocket, SentOrder } from '../base/order-shape.ts'
import type { Message } from './socket-status.ts'

const LOGGED = /^(buy|transaction|portfolio|proposal)$/
/** How many orders are remembered, and how many messages. */
const MAX_KEPT = 200

/** Remembers what `fate` must know to find out what became of an order. */
export interface OrderLog {
  /** Returns a new `req_id`, which no earlier connection has had. */
  readonly nextId: () => number
  /** Notes that a command with this text is sent. Undefined if it is no `buy`. */
  readonly sent: (text: string) => SentOrder | undefined
  readonly take: (message: Message) => void
}

/** @param socket opens a socket on the account */
export function orderLog(socket: () => OrderSocket): OrderLog {
  const orders = new Map<unknown, SentOrder>()
  const log = new Map<unknown, Message>()
  const account = { orders, log, socket }
  let id = 0
  return {
    nextId: () => ++id,
    sent(text) {
      const message = parseJson(text) as Message
      if (!message['buy']) return undefined
      const order = { message, sentAt: Date.now(), tick: performance.now(), before: [...log.values()], account }
      keep(orders, order, order)
      return order
    },
    take(message) {
      const { msg_type, proposal } = message as { msg_type: string; proposal?: { id?: unknown } }
      if (LOGGED.test(msg_type)) keep(log, proposal?.id ?? message, message)
    },
  }
}

/** Sets the newest entry of a map, and drops the oldest one of too many. */
function keep<V>(map: Map<unknown, V>, key: unknown, value: V): void {
  map.delete(key)
  map.set(key, value)
  if (map.size > MAX_KEPT) map.delete(map.keys().next().value)
}
