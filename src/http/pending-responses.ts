import type { Socket } from 'node:net'

/** Browsers do not pipeline, and balancers hardly do: more than this is somebody filling the memory. */
const MAX_PENDING = 16

/**
 * The requests of each connection that have no answer yet. Node reads on until answers pile up, and requests that wait for
 * a slow upstream have none.
 */
export class PendingResponses {
  readonly #counts = new WeakMap<Socket, number>()

  /** Counts a request. False when its connection sends request after request without waiting for answers. */
  begin(socket: Socket): boolean {
    const count = (this.#counts.get(socket) ?? 0) + 1
    this.#counts.set(socket, count)
    return count <= MAX_PENDING
  }

  end(socket: Socket): void {
    this.#counts.set(socket, (this.#counts.get(socket) ?? 1) - 1)
  }
}
