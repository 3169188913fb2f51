import type { BudgetClass } from '../../config/upstream-budget.ts'
import type { Refused, Reservation } from './admission.ts'
import type { Token } from './lease.ts'
import type { Caller } from './suspicion.ts'
import type { Hold, UpstreamRefusals } from './upstream-refusals.ts'

/** Where a call gets a second token, and where its refusal is counted. */
export interface TokenSource {
  /** Takes one more token, if there is one at hand. */
  another(): Token | undefined
  /** Counts the call as refused: because of a hold, or since there is no token. */
  refuse(hold?: Hold): Refused
}

/** One call: its token, whether upstream's own limits let it go, and what its response means for other calls. */
export class BudgetCall implements Reservation {
  readonly #refusals: UpstreamRefusals
  readonly #budgetClass: BudgetClass
  readonly #user: string
  readonly #source: (() => string) | undefined
  readonly #tokens: TokenSource
  #token: Token | undefined
  #caller: Caller | undefined
  /** The name of the probe that the call is, until it is answered; undefined for any other call. */
  #probe: string | undefined

  /** @param source see {@link Budget.admit} */
  constructor(
    refusals: UpstreamRefusals,
    tokens: TokenSource,
    budgetClass: BudgetClass,
    user: string,
    source: (() => string) | undefined,
  ) {
    this.#refusals = refusals
    this.#tokens = tokens
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

  /** Gives the call a token. */
  grant(token: Token): Reservation {
    this.#token = token
    return this
  }

  start(): Refused | undefined {
    // The request may have waited for its connection since it was admitted.
    const hold = this.hold()
    if (hold !== undefined) return this.#tokens.refuse(hold)
    // The first token is worth nothing if the lease has ended meanwhile, and is gone if undici writes the request again.
    const first = this.#token
    this.#token = undefined
    if (first?.spend() !== true && this.#tokens.another()?.spend() !== true) return this.#tokens.refuse()
    this.written()
    return undefined
  }

  /** The call is about to be written. It does not wait to learn whether it is the probe: the shared document tells when the response arrives. */
  written(): void {
    const caller = this.#refusals.isCalm || this.#probe !== undefined ? undefined : this.#named
    if (caller === undefined || !this.mayProbe) return
    this.#probe = this.#refusals.takeProbe(this.#budgetClass, caller).probe
  }

  answered(status: number, header: string | string[] | undefined): void {
    // An informational response is no answer yet.
    if (status < 200) return
    const retryAfter = Array.isArray(header) ? header[0] : header
    const probe = this.#probe
    this.#probe = undefined
    if (status === 429) {
      const caller = this.#named
      if (caller !== undefined) this.#refusals.refused(this.#budgetClass, caller, retryAfter, probe)
    } else if (probe !== undefined) void this.#refusals.note(this.#budgetClass, { is: 'answered', probe })
  }

  end(): void {
    this.#token?.release()
    this.#token = undefined
    // A probe without an answer lets another one go out.
    const probe = this.#probe
    this.#probe = undefined
    if (probe !== undefined) void this.#refusals.note(this.#budgetClass, { is: 'unanswered', probe })
  }

  /** The caller, if it is a user. */
  get #named(): Caller | undefined {
    if (this.#source === undefined) return undefined
    return (this.#caller ??= this.#refusals.named({ user: this.#user, source: this.#source() }))
  }
}
