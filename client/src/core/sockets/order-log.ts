import { parseJson } from '../base/json.ts'
import type { OrderSocket, SentOrder } from '../base/order-shape.ts'
import type { Message } from './socket-status.ts'

/** Remembers what `fate` must know to find out what became of an order. */
export class OrderLog {
  readonly #orders = new Map<unknown, SentOrder>()
  readonly #log = new Map<unknown, Message>()
  readonly #account: SentOrder['account']
  #id = 0

  /** @param socket opens a socket on the account */
  constructor(socket: () => OrderSocket) {
    this.#account = { orders: this.#orders, log: this.#log, socket }
  }

  /** Returns a new `req_id`, which no earlier connection has had. */
  nextId(): number {
    return ++this.#id
  }

  /** Notes that a command with this text is sent. Undefined if it is no `buy`. */
  sent(text: string): SentOrder | undefined {
    const message = parseJson(text) as Message
    if (!message['buy']) return undefined
    const before = [...this.#log.values()]
    const order = { message, sentAt: Date.now(), tick: performance.now(), before, account: this.#account }
    keep(this.#orders, order, order)
    return order
  }

  /** Notes a message of the trading service. */
  take(message: Message): void {
    const { msg_type, proposal } = message as { msg_type: string; proposal?: { id?: unknown } }
    if (/^(buy|transaction|portfolio|proposal)$/.test(msg_type)) keep(this.#log, proposal?.id ?? message, message)
  }
}

/** Sets the newest entry of a map, and drops the oldest one of too many. */
function keep<V>(map: Map<unknown, V>, key: unknown, value: V): void {
  map.delete(key)
  map.set(key, value)
  if (map.size > 200) map.delete(map.keys().next().value)
}
