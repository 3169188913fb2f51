/** What can be tried out in a page: a fault of the network or of the server, invented in this page alone. */
export type Fault = 'offline' | 'slow' | 'lostAnswer' | 'sessionEnded'

/** How late everything arrives with the fault `slow`. */
export const SLOW_MS = 2000

/** A socket that faults concern. */
export interface FaultySocket {
  /** Nothing arrives any more, in either direction. Nobody is told. */
  freeze(): void
  /** The browser notices that a frozen connection is gone. */
  thaw(): void
  /** The server closes the socket because the session has ended, if the socket needs one. */
  endSession(): void
}

/** The faults that are on, and the sockets that they concern. */
export class Faults {
  readonly #on = new Set<Fault>()
  readonly #sockets = new Set<FaultySocket>()
  readonly #onChange: () => void

  constructor(onChange: () => void) {
    this.#onChange = onChange
  }

  has(fault: Fault): boolean {
    return this.#on.has(fault)
  }

  /** Applies to a socket until the function that is returned is called. */
  watch(socket: FaultySocket): () => void {
    this.#sockets.add(socket)
    return () => this.#sockets.delete(socket)
  }

  set(fault: Fault, isOn: boolean): void {
    if (isOn === this.has(fault)) return
    if (isOn) this.#on.add(fault)
    else this.#on.delete(fault)
    if (fault === 'offline') this.#setOffline(isOn)
    if (fault === 'sessionEnded' && isOn) for (const socket of [...this.#sockets]) socket.endSession()
    this.#onChange()
  }

  /** Takes the one answer that is to be lost. @returns whether there is one */
  takeLostAnswer(): boolean {
    const isArmed = this.has('lostAnswer')
    this.set('lostAnswer', false)
    return isArmed
  }

  #setOffline(isOn: boolean): void {
    for (const socket of [...this.#sockets]) if (isOn) socket.freeze()
    if (isOn) Object.defineProperty(navigator, 'onLine', { configurable: true, value: false })
    else Reflect.deleteProperty(navigator, 'onLine')
    dispatchEvent(new Event(isOn ? 'offline' : 'online'))
    if (!isOn) for (const socket of [...this.#sockets]) socket.thaw()
  }
}
