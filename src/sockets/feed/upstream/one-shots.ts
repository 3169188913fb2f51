import type { UpstreamMessage } from '../wire/index.ts'
import type { FairShare } from './fair-share.ts'
import type { LinkOwner, Sender } from './link-users.ts'
import { Outage, type Departing } from './outage.ts'
import { UpstreamLink, type LinkDependencies } from './upstream-link.ts'

/** The text of a request with the given `req_id`. */
export type WriteRequest = (reqId: number) => Buffer

/** The sender of a request that gets one answer. */
type Asker = Sender & Required<Pick<Sender, 'tooBig'>>

/** A request that gets one answer. */
export interface Asked {
  /** The answer is not wanted any more. */
  cancel(): void
}

/** Sends the requests of all browsers that get one answer, on a connection that carries no streams. */
export class OneShots implements LinkOwner {
  readonly kind = 'request'
  readonly #link: UpstreamLink
  readonly #hasMembers: () => boolean
  readonly #unsent = new Set<OneShot>()
  readonly #outage: Outage
  readonly #share: FairShare
  #unanswered = 0

  /** @param hasMembers whether there are browsers: as long as there are, the connection stays */
  constructor(deps: LinkDependencies, spreadMs: number, share: FairShare, hasMembers: () => boolean) {
    this.#hasMembers = hasMembers
    this.#outage = new Outage(spreadMs, () => this.#giveUp())
    this.#share = share
    this.#link = new UpstreamLink(deps, this)
  }

  get isOpen(): boolean {
    return this.#link.isOpen
  }

  get isRetrying(): boolean {
    return this.#link.isRetrying
  }

  /** Sends a request, at once or as soon as the connection is open. If that takes too long, the sender is told. */
  ask(write: WriteRequest, sender: Asker): Asked {
    const oneShot = new OneShot(write, sender, {
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
      this.#outage.wait()
      this.#link.open()
    }
    return oneShot
  }

  /** A browser waits for an answer that will not come. */
  depart(browser: Departing): void {
    this.#outage.depart(browser)
  }

  isNeeded(): boolean {
    return this.#unanswered > 0 || this.#unsent.size > 0 || this.#hasMembers()
  }

  opened(): void {
    this.#outage.over()
    for (const oneShot of this.#unsent) this.#send(oneShot)
    this.#unsent.clear()
  }

  beat(): void {
    // The senders of open requests look after them.
  }

  unclaimed(): void {
    // There are no streams on this connection.
  }

  lost(): void {
    // The senders of open requests have been told. Requests that were not sent wait for the connection.
  }

  close(): void {
    this.#outage.over()
    this.#link.close()
  }

  #send(oneShot: OneShot): void {
    this.#unanswered++
    oneShot.reqId = this.#link.send(oneShot.write, oneShot)
  }

  #giveUp(): void {
    const unsent = [...this.#unsent]
    for (const oneShot of unsent) oneShot.lost()
  }
}

interface OneShotOwner {
  /** No answer is expected any more. */
  settled(reqId: number | undefined): void
  /** Upstream has had too many requests. */
  refused(): void
}

class OneShot implements Sender, Asked {
  readonly write: WriteRequest
  /** Undefined until the request has been sent. */
  reqId: number | undefined
  readonly #sender: Asker
  readonly #owner: OneShotOwner

  constructor(write: WriteRequest, sender: Asker, owner: OneShotOwner) {
    this.write = write
    this.#sender = sender
    this.#owner = owner
  }

  received(message: UpstreamMessage): void {
    this.#owner.settled(this.reqId)
    if (message.errorCode === 'RateLimit') this.#owner.refused()
    this.#sender.received(message)
  }

  tooBig(message: UpstreamMessage): void {
    this.#owner.settled(this.reqId)
    this.#sender.tooBig(message)
  }

  beat(): void {
    this.#sender.beat?.()
  }

  lost(): void {
    this.#owner.settled(this.reqId)
    this.#sender.lost()
  }

  cancel(): void {
    this.#owner.settled(this.reqId)
  }
}
