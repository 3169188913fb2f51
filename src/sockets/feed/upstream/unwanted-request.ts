import { backoffMs } from '../../../time/backoff.ts'
import { REFUSED } from './backoff.ts'
import type { Requester } from './link-users.ts'
import type { UpstreamLink } from './upstream-link.ts'

/** How long an unwanted request is remembered: upstream may answer late. */
const LATE_MS = 60_000

/** A request whose streams no browser wants any more. What upstream still starts because of it is forgotten as well. */
export class UnwantedRequest implements Requester {
  readonly #link: UpstreamLink
  readonly #reqId: number
  readonly #isTaken: (id: string) => boolean
  readonly #ids = new Set<string>()
  #unanswered = 0
  #refusals = 0
  /** They run until the request is released, and until a `forget` that upstream has refused is sent again. */
  readonly #timers = new Set<NodeJS.Timeout>()
  #isLost = false

  /** @param isTaken whether another stream has an id by now @param subscriptionId what upstream has started, if it has */
  constructor(link: UpstreamLink, reqId: number, isTaken: (id: string) => boolean, subscriptionId: string | undefined) {
    this.#link = link
    this.#reqId = reqId
    this.#isTaken = isTaken
    // Without an id, upstream has refused the request or not answered it. Hardly anything will come.
    if (subscriptionId === undefined) this.#after(LATE_MS, () => this.#releaseIfDone())
    else this.forget(subscriptionId)
  }

  forget(id: string): void {
    if (this.#ids.has(id)) return
    this.#ids.add(id)
    this.#unanswered++
    this.#ask(id)
  }

  received({ subscriptionId }: { readonly subscriptionId: string | undefined }): void {
    if (subscriptionId !== undefined) this.forget(subscriptionId)
  }

  lost(): void {
    // The subscriptions have ended with the connection.
    this.#isLost = true
    for (const timer of this.#timers) clearTimeout(timer)
  }

  #ask(id: string): void {
    if (this.#isLost || !this.#link.isOpen) return
    const reqId = this.#link.send((reqId) => `{"forget":${JSON.stringify(id)},"req_id":${reqId}}`, {
      received: ({ errorCode }) => {
        this.#link.release(reqId)
        // Until then the messages of the stream are still ignored.
        if (errorCode !== 'RateLimit') return this.#answered()
        this.#after(backoffMs(this.#refusals++, REFUSED), () => this.#askAgain(id))
      },
      lost: () => undefined,
    })
  }

  #after(ms: number, run: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      run()
    }, ms).unref()
    this.#timers.add(timer)
  }

  #releaseIfDone(): void {
    if (this.#unanswered === 0) this.#link.release(this.#reqId)
  }

  #askAgain(id: string): void {
    if (this.#isTaken(id)) this.#answered()
    else this.#ask(id)
  }

  #answered(): void {
    this.#unanswered--
    this.#releaseIfDone()
  }
}
