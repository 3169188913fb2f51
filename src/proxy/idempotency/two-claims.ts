import type { Claim, Ending, HeldClaim, Result } from './claim.ts'
import type { KeptAnswer } from './record.ts'

/**
 * The claims to both names of a quoted key: the key, and the header as it came, under which version 0.2 looks for it. They
 * begin one after the other, since in a Cluster no command can write both, and the call is sent only with both. Version 0.3
 * claims the key first, so two of its instances never hold one name each.
 */
export class TwoClaims implements HeldClaim {
  readonly #first: Claim
  readonly #second: Claim

  constructor(first: Claim, second: Claim) {
    this.#first = first
    this.#second = second
  }

  get own(): Claim['own'] {
    return this.#first.own
  }

  get mayKeep(): boolean {
    return this.#first.mayKeep && this.#second.mayKeep
  }

  get maySend(): boolean {
    return this.#first.maySend && this.#second.maySend
  }

  get isLost(): boolean {
    return this.#first.isLost || this.#second.isLost
  }

  set onLost(listener: () => void) {
    this.#first.onLost = this.#second.onLost = listener
  }

  keep(answer: KeptAnswer): Promise<Ending> {
    return this.#both((claim) => claim.keep(answer))
  }

  finish(result: Result): Promise<Ending> {
    return this.#both((claim) => claim.finish(result))
  }

  /** If a repeated call was told that the outcome is unknown, the record of the other name says so too. */
  async free(): Promise<Ending> {
    const ending = await this.#first.free()
    await (this.#first.isLost ? this.#second.finish({ is: 'unknown' }) : this.#second.free())
    return ending
  }

  async #both(end: (claim: Claim) => Promise<Ending>): Promise<Ending> {
    const [ending] = await Promise.all([end(this.#first), end(this.#second)])
    return ending
  }
}
