import type { Debugged } from '../core/create-client.ts'
import { Faults, type Fault } from './faults.ts'
import { ObservedClient } from './observed-client.ts'
import { Traffic } from './traffic.ts'

/** What the devtools know of this page, and what they do to it. Every panel shows the same. */
export class DevtoolsState {
  readonly clients = new Set<ObservedClient>()
  readonly traffic: Traffic
  readonly faults: Faults
  readonly #listeners = new Set<() => void>()

  constructor() {
    const changed = (): void => {
      for (const listener of this.#listeners) listener()
    }
    this.traffic = new Traffic(changed)
    this.faults = new Faults(changed)
  }

  /** Calls the listener after every change. @returns a function that stops the calls */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  add(debugged: Debugged): void {
    const client = new ObservedClient(
      debugged,
      this.traffic,
      this.faults,
      () => this.traffic.changed(),
      () => this.clients.delete(client),
    )
    this.clients.add(client)
    this.traffic.changed()
  }

  /** Turns a fault on or off. Where it concerns the session, the clients ask for that at once. */
  setFault(fault: Fault, isOn: boolean): void {
    this.faults.set(fault, isOn)
    if (fault === 'sessionEnded') for (const { client } of this.clients) void client.session.check()
  }
}
