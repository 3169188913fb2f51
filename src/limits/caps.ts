import { limitsOf } from './networks.ts'
import { MinuteCounts } from './minute-counts.ts'
import { once, Permits, type Release } from './permits.ts'
import { SessionPermits, type PermitStore } from './session-permits.ts'

/** How many sockets this process may have, and all instances together for a session. */
interface CapLimits {
  readonly maxRelays: number
  readonly maxPerSession: number
  readonly maxSessionSockets: number
  readonly maxSessionSocketsPerIp: number
  readonly maxPublicPerIp: number
  readonly publicHandshakesPerMinute: number
}

/** One in this many of all permits is reserved for trading, so that strangers cannot keep traders out. */
const TRADING_SHARE = 4
/** A session may have so many times the trading sockets that it may open: some may be waiting for its token, and hold a permit. */
const OPENING = 4

/** The permits of browser sockets. A socket holds its permits from the start of its handshake until it closes. */
export class Caps {
  readonly #limits: CapLimits
  readonly #permits = new Permits()
  readonly #sessions: SessionPermits
  readonly #handshakes = new MinuteCounts()

  constructor(limits: CapLimits, store: PermitStore) {
    this.#limits = limits
    this.#sessions = new SessionPermits(store, limits.maxPerSession)
  }

  /** Seconds until {@link allowsHandshake} allows more. */
  get handshakeSecondsLeft(): number {
    return this.#handshakes.secondsLeft
  }

  /** Counts a handshake of a client address that needs no login. False when it exceeds the limit of this minute. */
  allowsHandshake(address: string): boolean {
    const limits = limitsOf(address, this.#limits.publicHandshakesPerMinute)
    return limits.every(([network, limit]) => this.#handshakes.allows(network, limit))
  }

  /** A permit of this process, which every socket needs. Undefined when the process is full. */
  acquireProcess(): Release | undefined {
    return this.#acquire('process', this.#limits.maxRelays)
  }

  /** A permit that is not reserved for trading, which every socket but a trading socket needs as well. */
  acquireUnreserved(): Release | undefined {
    const { maxRelays } = this.#limits
    return this.#acquire('unreserved', maxRelays - Math.floor(maxRelays / TRADING_SHARE))
  }

  /** A permit of this process for a trading socket of a session, also while it is not known yet whether it may open. */
  acquireOpening(key: string): Release | undefined {
    return this.#acquire(`opening of ${key}`, OPENING * this.#limits.maxPerSession)
  }

  /** A permit for a trading socket of a session, which counts over all instances. */
  acquireSession(key: string): Promise<Release | undefined> {
    return this.#sessions.acquire(key)
  }

  /** A permit for a session socket. @param sharer the subject with all its sessions, or a session without one */
  acquireSessionSocket(sharer: string): Release | undefined {
    return this.#acquire(`session socket of ${sharer}`, this.#limits.maxSessionSockets)
  }

  /** A permit for a session socket at a client address, which a session without a subject needs as well. */
  acquireSessionSocketAt(address: string): Release | undefined {
    return this.#acquireAt('session socket at', address, this.#limits.maxSessionSocketsPerIp)
  }

  /** A permit for a public socket of a client address. */
  acquireAddress(address: string): Release | undefined {
    return this.#acquireAt('address:', address, this.#limits.maxPublicPerIp)
  }

  /** A permit in each network of a client. Undefined, and none is taken, when one of them is full. */
  #acquireAt(what: string, address: string, perAddress: number): Release | undefined {
    const taken: Release[] = []
    const release = (): void => taken.forEach((each) => each())
    for (const [network, limit] of limitsOf(address, perAddress)) {
      const permit = this.#acquire(`${what} ${network}`, limit)
      if (permit === undefined) return void release()
      taken.push(permit)
    }
    return release
  }

  #acquire(key: string, limit: number): Release | undefined {
    return this.#permits.acquire(key, limit) ? once(() => this.#permits.release(key)) : undefined
  }
}
