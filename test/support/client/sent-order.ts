import type { OrderSocket, SentOrder } from '../../../client/src/core/base/order-shape.ts'

type Message = Readonly<Record<string, unknown>>

/** When orders are sent, in milliseconds, and by the clock that no user can set. */
export const SENT_AT = 1_700_000_000_000
export const TICK = 5000

/** What an order asks for. */
const PARAMETERS = { contract_type: 'CALL', underlying_symbol: 'R_100', amount: 10, basis: 'stake' }

/** A contract with these terms that was bought when the order was sent. */
export const CONTRACT = {
  contract_id: 7,
  contract_type: 'CALL',
  underlying_symbol: 'R_100',
  buy_price: 10,
  purchase_time: SENT_AT / 1000,
}

/** An account with orders that were sent there, and what the page has heard of them. */
export function account(socket: () => OrderSocket = () => ({}) as OrderSocket) {
  const orders = new Map<unknown, SentOrder>()
  const log = new Map<unknown, Message>()
  const shared = { orders, log, socket }
  return {
    /** Sends an order with this `req_id`. */
    send: (req_id: number, changes: Partial<SentOrder> = {}, parameters: Message = {}): SentOrder => {
      const message = { buy: '1', price: 10, req_id, parameters: { ...PARAMETERS, ...parameters } }
      const order = { message, sentAt: SENT_AT, tick: TICK, before: [], account: shared, ...changes }
      orders.set(order, order)
      return order
    },
    hear: (message: Message): void => void log.set(message, message),
  }
}
