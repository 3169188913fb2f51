import type { BudgetClass } from '../../config/upstream-budget.ts'
import type { Caller } from './suspicion.ts'
import type { Hold, UpstreamRefusals } from './upstream-refusals.ts'

/** One call under upstream's own limits: whether it may be sent, and what its response means for other calls. */
export class LimitedCall {
  readonly #refusals: UpstreamRefusals
  readonly #budgetClass: BudgetClass
  readonly #user: string
  readonly #source: (() => string) | undefined
  #caller: Caller | undefined
  /** Its name, if it is a probe, until it is answered. */
  #probe: string | undefined

  /** @param source see {@link Budget.admit} */
  constructor(refusals: UpstreamRefusals, budgetClass: BudgetClass, user: string, source: (() => string) | undefined) {
    this.#refusals = refusals
    this.#budgetClass = budgetClass
    this.#user = user
    this.#source = source
  }

  /** Why the call may not be sent now. */
  hold(): Hold | undefined {
    if (this.#refusals.isCalm) return undefined
    const hold = this.#refusals.hold(this.#budgetClass, this.#named)
    return this.#probe !== undefined && hold?.limited === 'all' ? undefined : hold
  }

  /** Whether the call would be a probe, as far as this process knows. */
  get mayProbe(): boolean {
    const caller = this.#named
    return caller !== undefined && this.#refusals.mayProbe(this.#budgetClass, caller)
  }

  /** Makes the call the probe of all instances. Resolves with false if another call is. */
  async takeProbe(): Promise<boolean> {
    const caller = this.#named
    if (caller === undefined) return false
    const { probe, taken } = this.#refusals.takeProbe(this.#budgetClass, caller)
    if (await taken) this.#probe = probe
    return this.#probe !== undefined
  }

  /** The call is about to be written. It does not wait to learn whether it is the probe: the shared document tells when the response arrives. */
  written(): void {
    const caller = this.#refusals.isCalm || this.#probe !== undefined ? undefined : this.#named
    if (caller === undefined || !this.mayProbe) return
    this.#probe = this.#refusals.takeProbe(this.#budgetClass, caller).probe
  }

  /** Upstream has answered. */
  answered(status: number, retryAfter: string | undefined): void {
    const probe = this.#probe
    this.#probe = undefined
    if (status === 429) {
      const caller = this.#named
      if (caller !== undefined) this.#refusals.refused(this.#budgetClass, caller, retryAfter, probe)
    } else if (probe !== undefined) this.#refusals.answered(this.#budgetClass, probe)
  }

  /** The call is over. A probe without an answer lets another one go out. */
  end(): void {
    if (this.#probe !== undefined) this.#refusals.unanswered(this.#budgetClass, this.#probe)
    this.#probe = undefined
  }

  /** The caller, if it is a user. */
  get #named(): Caller | undefined {
    if (this.#source === undefined) return undefined
    return (this.#caller ??= this.#refusals.named({ user: this.#user, source: this.#source() }))
  }
}
