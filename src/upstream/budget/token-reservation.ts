import type { Reservation } from './admission.ts'
import type { Token } from './lease.ts'

/** What a reservation needs of the budget. */
interface Source {
  /** Takes one more token, if there is one at hand. */
  another(): Token | undefined
  /** Whether upstream refuses the class at present. */
  isHeldBack(): boolean
  /** Counts the request as refused. Returns how long to wait (ms). */
  refuse(): number
  /** Upstream has answered 429. */
  refused(retryAfter: string | undefined): void
}

/** A token for one request. */
export class TokenReservation implements Reservation {
  #token: Token | undefined
  readonly #source: Source

  constructor(token: Token, source: Source) {
    this.#token = token
    this.#source = source
  }

  start(): number | undefined {
    // The request may have waited for its connection since it was admitted.
    if (this.#source.isHeldBack()) return this.#source.refuse()
    // The first token is worth nothing if the lease has ended meanwhile, and is gone if undici writes the request again.
    const first = this.#token
    this.#token = undefined
    if (first?.spend() === true || this.#source.another()?.spend() === true) return undefined
    return this.#source.refuse()
  }

  answered(status: number, retryAfter: string | string[] | undefined): void {
    if (status === 429) this.#source.refused(Array.isArray(retryAfter) ? retryAfter[0] : retryAfter)
  }

  end(): void {
    this.#token?.release()
    this.#token = undefined
  }
}
