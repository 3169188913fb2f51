import { Departures, Patience } from './departures.ts'
import type { UpstreamMessage } from '../wire/index.ts'
import type { FairShare } from './fair-share.ts'
import type { LinkOwner, Requester } from './link-users.ts'
import { UpstreamLink, type LinkDependencies } from './upstream-link.ts'

/** The text of a request with the given `req_id`. */
export type WriteRequest = (reqId: number) => Buffer

/** The sender of a request that gets one answer. */
type Asker = Required<Requester>

/** A request that gets one answer. */
export interface Asked {
  /** The answer is not wanted any more. */
  cancel(): void
}

/** Sends the requests of all browsers that get one answer, on a connection that carries no streams. */
export class OneShots implements LinkOwner {
  readonly kind = 'request'
  /** The browsers that wait for an answer that will not come. */
  readonly departures: Departures
  readonly #link: UpstreamLink
  readonly #hasMembers: () => boolean
  readonly #unsent = new Set<OneShot>()
  readonly #patience = new Patience(() => this.#giveUp())
  readonly #share: FairShare
  #unanswered = 0

  /** @param hasMembers whether there are browsers: as long as there are, the connection stays */
  constructor(deps: LinkDependencies, spreadMs: number, share: FairShare, hasMembers: () => boolean) {
    this.#hasMembers = hasMembers
    this.departures = new Departures(spreadMs)
    this.#share = share
    this.#link = new UpstreamLink(deps, this)
  }

  get isOpen(): boolean {
    return this.#link.isOpen
  }

  get isRetrying(): boolean {
    return this.#link.isRetrying
  }

  /** Sends a request, at once or as soon as the connection is open. If that takes too long, the requester is told. */
  ask(write: WriteRequest, requester: Asker): Asked {
    const oneShot = new OneShot(write, requester, {
      settled: (reqId) => {
        this.#unsent.delete(oneShot)
        if (reqId === undefined) return
        this.#unanswered--
        this.#link.release(reqId)
      },
      refused: () => this.#share.refused(),
    })
    if (this.#link.isOpen) this.#send(oneShot)
    else {
      this.#unsent.add(oneShot)
      this.#patience.start()
      this.#link.open()
    }
    return oneShot
  }

  isNeeded(): boolean {
    return this.#unanswered > 0 || this.#unsent.size > 0 || this.#hasMembers()
  }

  opened(): void {
    this.#patience.stop()
    this.departures.release()
    for (const oneShot of this.#unsent) this.#send(oneShot)
    this.#unsent.clear()
  }

  unclaimed(): void {
    // There are no streams on this connection.
  }

  lost(): void {
    // The senders of open requests have been told. Requests that were not sent wait for the connection.
  }

  close(): void {
    this.#patience.stop()
    this.#link.close()
  }

  #send(oneShot: OneShot): void {
    this.#unanswered++
    oneShot.reqId = this.#link.send(oneShot.write, oneShot)
  }

  #giveUp(): void {
    const unsent = [...this.#unsent]
    for (const oneShot of unsent) oneShot.lost()
    this.departures.release()
  }
}

interface OneShotOwner {
  /** No answer is expected any more. */
  settled(reqId: number | undefined): void
  /** Upstream has had too many requests. */
  refused(): void
}

class OneShot implements Requester, Asked {
  readonly write: WriteRequest
  /** Undefined until the request has been sent. */
  reqId: number | undefined
  readonly #requester: Asker
  readonly #owner: OneShotOwner

  constructor(write: WriteRequest, requester: Asker, owner: OneShotOwner) {
    this.write = write
    this.#requester = requester
    this.#owner = owner
  }

  received(message: UpstreamMessage): void {
    this.#owner.settled(this.reqId)
    if (message.errorCode === 'RateLimit') this.#owner.refused()
    this.#requester.received(message)
  }

  tooBig(message: UpstreamMessage): void {
    this.#owner.settled(this.reqId)
    this.#requester.tooBig(message)
  }

  lost(): void {
    this.#owner.settled(this.reqId)
    this.#requester.lost()
  }

  cancel(): void {
    this.#owner.settled(this.reqId)
  }
}
