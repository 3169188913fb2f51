import type { OverBudget, Reservation } from './budget/admission.ts'

/** What must hold when the first byte leaves. What is absent is not asked. Each answer costs no round trip. */
export interface FirstByteConditions {
  /** Whether the session is live and as it was read, as far as this process has heard, and hears. */
  readonly session?: (() => boolean) | undefined
  /** The claim to the Idempotency-Key of a call. */
  readonly claim?: { readonly maySend: boolean } | undefined
  /** Whether the user may order. Absent for a GET, and where nobody can pause orders. */
  readonly orders?: (() => boolean) | undefined
}

/** Nothing was sent, because a condition does not hold, or not any more. A lost claim never holds again; the others may. */
export interface Stale {
  readonly is: 'stale'
  readonly why: keyof FirstByteConditions
}

const stale = (why: Stale['why']): Stale => ({ is: 'stale', why })
const STALE = { session: stale('session'), claim: stale('claim'), orders: stale('orders') }

/**
 * May the first byte go? A call asks this once, when its connection is free and it is written next (exchange.ts): that is after every
 * wait for its body, the budget or a connection. A message of a trading socket asks when it arrives, and again when it was held for
 * the store or an identification (relay.ts).
 */
export class FirstByte {
  readonly #conditions: FirstByteConditions
  readonly #reservation: Pick<Reservation, 'start'> | undefined

  /** @param reservation the place in the budget, where there is one */
  constructor(conditions: FirstByteConditions, reservation?: Pick<Reservation, 'start'>) {
    this.#conditions = conditions
    this.#reservation = reservation
  }

  /** Why it may not go. Undefined if it may: then the place in the budget is spent, and the byte must be written before anything else runs. */
  refusal(): Stale | OverBudget | undefined {
    const { session, claim, orders } = this.#conditions
    if (session?.() === false) return STALE.session
    if (claim?.maySend === false) return STALE.claim
    if (orders?.() === false) return STALE.orders
    const refused = this.#reservation?.start()
    return refused && { ...refused, is: 'overBudget' }
  }
}
