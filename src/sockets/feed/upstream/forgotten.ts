import { pauseMs } from './backoff.ts'
import type { Requester } from './link-users.ts'
import type { UpstreamLink } from './upstream-link.ts'

/** A request whose streams nobody wants any more. Whatever upstream still starts because of it is forgotten as well. */
export class Forgotten implements Requester {
  readonly #link: UpstreamLink
  readonly #reqId: number
  readonly #isTaken: (id: string) => boolean
  readonly #ids = new Set<string>()
  #unanswered = 0
  #refusals = 0
  #retry: NodeJS.Timeout | undefined
  #isLost = false

  /** @param isTaken whether another stream has an id by now */
  constructor(link: UpstreamLink, reqId: number, isTaken: (id: string) => boolean) {
    this.#link = link
    this.#reqId = reqId
    this.#isTaken = isTaken
  }

  get isBusy(): boolean {
    return this.#unanswered > 0
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
    clearTimeout(this.#retry)
  }

  #ask(id: string): void {
    if (this.#isLost || !this.#link.isOpen) return
    const reqId = this.#link.send((reqId) => `{"forget":${JSON.stringify(id)},"req_id":${reqId}}`, {
      received: ({ errorCode }) => {
        this.#link.release(reqId)
        // Until then the messages of the stream are still ignored.
        if (errorCode !== 'RateLimit') return this.#answered()
        this.#retry = setTimeout(() => this.#askAgain(id), pauseMs(this.#refusals++)).unref()
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
