import type { ConnectionOwner, Listener, WriteRequest } from './connection-users.ts'
import { Outage } from './recovery.ts'
import { Connection, type ConnectionDependencies } from './connection.ts'

/** Sends the requests of all browsers that get one answer, on a connection that carries no streams. */
export class OneShots implements ConnectionOwner {
  readonly kind = 'request'
  readonly connection: Connection
  /** Whether there are browsers: as long as there are, the connection stays. */
  readonly isNeeded: () => boolean
  readonly #unsent = new Map<Listener, WriteRequest>()
  readonly outage: Outage

  constructor(deps: ConnectionDependencies, spreadMs: number, hasMembers: () => boolean) {
    this.isNeeded = hasMembers
    this.outage = new Outage(spreadMs, () => this.#lose())
    this.connection = new Connection(deps, this)
  }

  /** Sends a request, at once or as soon as the connection is open. If that takes too long, it is lost. */
  ask(write: WriteRequest, listener: Listener): void {
    if (this.connection.isOpen) return void this.connection.send(write, listener)
    this.#unsent.set(listener, write)
    this.outage.wait()
    this.connection.open()
  }

  opened(): void {
    this.outage.over()
    for (const [listener, write] of this.#unsent) this.connection.send(write, listener)
    this.#unsent.clear()
  }

  end(): void {
    this.outage.over()
    this.connection.end()
  }

  #lose(): void {
    const unsent = [...this.#unsent.keys()]
    this.#unsent.clear()
    for (const listener of unsent) listener.lost?.()
  }
}
