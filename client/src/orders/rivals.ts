import type { SentOrder } from '../core/base/order-shape.ts'
import type { Message } from '../core/sockets/socket-status.ts'
import { contractsOf } from './contracts.ts'
import { areAlike, termsOf } from './terms.ts'

/**
 * By how many milliseconds the clock of the user has moved against the one that no user can set: by how much it was set, and how
 * long the machine slept, if the other one stops then.
 * @param to now by default
 */
export function movedMs(
  from: Pick<SentOrder, 'sentAt' | 'tick'>,
  to: typeof from = { sentAt: Date.now(), tick: performance.now() },
): number {
  return to.sentAt - to.tick - (from.sentAt - from.tick)
}

/** The contracts that `fate` has found, by their order. */
const found = new WeakMap<SentOrder, string>()

/** Notes which contract an order has bought. */
export function noteContract(order: SentOrder, contractId: string): void {
  found.set(order, contractId)
}

/** What is known of an order: the first message in reply to it, if there is one, and the contract that it has bought. */
export function outcomeOf(order: SentOrder): {
  readonly reply?: Message | undefined
  readonly contractId?: string | undefined
} {
  const id = order.message['req_id']
  const replies = [...order.account.log.values()].filter(({ req_id }) => req_id === id)
  const [contract] = replies.flatMap(contractsOf)
  return { reply: replies[0], contractId: contract ? String(contract.contract_id) : found.get(order) }
}

/**
 * The other orders on the account of an order, whose contracts could be taken for its own.
 * @param executedMs within which time an order is executed
 * @returns the contracts that are known to be theirs, and those without a known outcome that may have bought, or may still buy, a
 * contract that fits
 */
export function rivalsOf(
  order: SentOrder,
  executedMs: number,
): { readonly contracts: ReadonlySet<string | undefined>; readonly pending: readonly SentOrder[] } {
  const others = [...order.account.orders.values()].filter((other) => other !== order)
  const terms = termsOf(order)
  const pending = others.filter((other) => {
    const laterMs = Math.abs(other.sentAt - order.sentAt)
    // An order that was sent before this one may still be executed after it. The clock may have been set between them.
    if (laterMs - Math.abs(movedMs(order, other)) > executedMs) return false
    const { reply, contractId } = outcomeOf(other)
    return reply === undefined && contractId === undefined && areAlike(terms, termsOf(other))
  })
  return { contracts: new Set(others.map((other) => outcomeOf(other).contractId)), pending }
}
