import type { LinkOwner, Sender, WriteRequest } from './link-users.ts'
import { Outage, type Departing } from './recovery.ts'
import { UpstreamLink, type LinkDependencies } from './upstream-link.ts'

/** Sends the requests of all browsers that get one answer, on a connection that carries no streams. */
export class OneShots implements LinkOwner {
  readonly kind = 'request'
  readonly link: UpstreamLink
  /** Whether there are browsers: as long as there are, the connection stays. */
  readonly isNeeded: () => boolean
  readonly #unsent = new Map<Sender, WriteRequest>()
  readonly #outage: Outage

  constructor(deps: LinkDependencies, spreadMs: number, hasMembers: () => boolean) {
    this.isNeeded = hasMembers
    this.#outage = new Outage(spreadMs, () => this.#giveUp())
    this.link = new UpstreamLink(deps, this)
  }

  /** Sends a request, at once or as soon as the connection is open. If that takes too long, it is lost. */
  ask(write: WriteRequest, sender: Sender): void {
    if (this.link.isOpen) return void this.link.send(write, sender)
    this.#unsent.set(sender, write)
    this.#outage.wait()
    this.link.open()
  }

  /** A browser waits for an answer that will not come. */
  depart(browser: Departing): void {
    this.#outage.depart(browser)
  }

  opened(): void {
    this.#outage.over()
    for (const [sender, write] of this.#unsent) this.link.send(write, sender)
    this.#unsent.clear()
  }

  close(): void {
    this.#outage.over()
    this.link.close()
  }

  #giveUp(): void {
    const unsent = [...this.#unsent.keys()]
    this.#unsent.clear()
    for (const sender of unsent) sender.lost?.()
  }
}
