import { CLOSE, type CloseStatus } from './close-codes.ts'

/** Few sockets close at once; many are spread, so that their browsers do not all reconnect in one moment. */
const MS_PER_SOCKET = 2

/** A browser's socket in its handshake, or open. */
export interface Registered {
  /** Bytes that wait in this process for its peers. */
  readonly bufferedBytes: number
  end(close: CloseStatus): void
}

/** The browser sockets of this process. */
export class SocketRegistry {
  readonly #sockets = new Set<Registered>()
  #isClosing = false
  #emptied: (() => void) | undefined

  /** True once the server drains: no socket may open any more. */
  get isClosing(): boolean {
    return this.#isClosing
  }

  /** Bytes that wait in this process for the peers of all sockets. */
  get bufferedBytes(): number {
    let bytes = 0
    for (const socket of this.#sockets) bytes += socket.bufferedBytes
    return bytes
  }

  /** Adds a socket. Returns how to remove it; removing it twice is harmless. */
  add(socket: Registered): () => void {
    this.#sockets.add(socket)
    return () => {
      if (this.#sockets.delete(socket) && this.#sockets.size === 0) this.#emptied?.()
    }
  }

  /**
   * Closes all sockets with 1012, spread over `maxMs` at most. Resolves when all are gone.
   * @param returnMs resolves with the time after which the last page may come back: a socket is of use until then
   */
  async closeAll(maxMs: number, returnMs: Promise<number> | undefined): Promise<void> {
    this.#isClosing = true
    const wantedMs = Math.max((await returnMs) ?? 0, this.#sockets.size * MS_PER_SOCKET)
    if (this.#sockets.size === 0) return
    const spreadMs = Math.min(maxMs, wantedMs)
    const emptied = new Promise<void>((resolve) => (this.#emptied = resolve))
    for (const socket of this.#sockets) {
      setTimeout(() => socket.end(CLOSE.restarting), Math.random() * spreadMs)
    }
    await emptied
  }
}
