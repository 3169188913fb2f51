import type { Refused, Reservation } from './admission.ts'
import type { Token } from './lease.ts'
import type { LimitedCall } from './limited-call.ts'
import type { Hold } from './upstream-refusals.ts'

/** What a reservation needs of the budget. */
interface Source {
  /** Takes one more token, if there is one at hand. */
  another(): Token | undefined
  /** Counts the request as refused: because of a hold, or since there is no token. */
  refuse(hold?: Hold): Refused
}

/** A token for one request. */
export class TokenReservation implements Reservation {
  #token: Token | undefined
  readonly #source: Source
  readonly #call: LimitedCall

  constructor(token: Token, source: Source, call: LimitedCall) {
    this.#token = token
    this.#source = source
    this.#call = call
  }

  start(): Refused | undefined {
    // The request may have waited for its connection since it was admitted.
    const hold = this.#call.hold()
    if (hold !== undefined) return this.#source.refuse(hold)
    // The first token is worth nothing if the lease has ended meanwhile, and is gone if undici writes the request again.
    const first = this.#token
    this.#token = undefined
    if (first?.spend() !== true && this.#source.another()?.spend() !== true) return this.#source.refuse()
    this.#call.written()
    return undefined
  }

  answered(status: number, retryAfter: string | string[] | undefined): void {
    // An informational response is no answer yet.
    if (status >= 200) this.#call.answered(status, Array.isArray(retryAfter) ? retryAfter[0] : retryAfter)
  }

  end(): void {
    this.#token?.release()
    this.#token = undefined
    this.#call.end()
  }
}
