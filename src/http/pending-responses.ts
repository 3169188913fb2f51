import type { Socket } from 'node:net'

/** Browsers do not pipeline, and balancers hardly do, so a client that exceeds this is filling the memory. */
const MAX_PENDING = 16

/**
 * Counts the requests of each connection that wait for a response. Node stops reading only when written responses pile
 * up, so without this count a client could pipeline any number of requests to a slow upstream.
 */
export class PendingResponses {
  readonly #counts = new WeakMap<Socket, number>()

  /** Counts a request. Returns false if too many requests of its connection wait for a response. */
  begin(socket: Socket): boolean {
    const count = (this.#counts.get(socket) ?? 0) + 1
    this.#counts.set(socket, count)
    return count <= MAX_PENDING
  }

  end(socket: Socket): void {
    this.#counts.set(socket, (this.#counts.get(socket) ?? 1) - 1)
  }
}
