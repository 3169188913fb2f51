import type { Sender } from './link-users.ts'
import type { UpstreamLink } from './upstream-link.ts'

/** How long an unwanted request is remembered: upstream may answer late. */
const LATE_MS = 60_000

/** A request whose streams no browser wants any more. What upstream still starts because of it is forgotten as well. */
export class UnwantedRequest implements Sender {
  readonly #link: UpstreamLink
  readonly #reqId: number
  readonly #isTaken: (id: string) => boolean
  readonly #ids = new Set<string>()
  #unanswered = 0
  /** The ids whose `forget` upstream has refused. Until it is taken, the messages of the stream are ignored. */
  #refused: string[] = []
  readonly #releasedAt = performance.now() + LATE_MS

  /** @param isTaken whether another stream has an id by now @param subscriptionId what upstream has started, if it has */
  constructor(link: UpstreamLink, reqId: number, isTaken: (id: string) => boolean, subscriptionId: string | undefined) {
    this.#link = link
    this.#reqId = reqId
    this.#isTaken = isTaken
    // Without an id, upstream has refused the request or not answered it. Hardly anything will come.
    if (subscriptionId !== undefined) this.forget(subscriptionId)
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

  /** Upstream counts requests by the minute, so it is asked again after a moment. */
  beat(): void {
    const refused = this.#refused
    this.#refused = []
    for (const id of refused) this.#askAgain(id)
    if (this.#unanswered === 0 && performance.now() >= this.#releasedAt) this.#link.release(this.#reqId)
  }

  lost(): void {
    // The subscriptions have ended with the connection.
  }

  #ask(id: string): void {
    if (!this.#link.isOpen) return
    const reqId = this.#link.send((reqId) => `{"forget":${JSON.stringify(id)},"req_id":${reqId}}`, {
      received: ({ errorCode }) => {
        this.#link.release(reqId)
        if (errorCode === 'RateLimit') this.#refused.push(id)
        else this.#answered()
      },
      lost: () => undefined,
    })
  }

  #askAgain(id: string): void {
    if (this.#isTaken(id)) this.#answered()
    else this.#ask(id)
  }

  #answered(): void {
    if (--this.#unanswered === 0) this.#link.release(this.#reqId)
  }
}
