import { network } from '../http/client-address.ts'
import { MinuteCounts } from '../http/minute-counts.ts'
import { Permits } from '../http/permits.ts'

/** How many relays there may be, per process. */
export interface CapLimits {
  readonly maxRelays: number
  readonly maxPerSession: number
  readonly maxPublicPerIp: number
  readonly publicHandshakesPerMinute: number
}

/** One part in so many of all places is kept for trading: strangers must not keep traders out. */
const TRADING_SHARE = 4

/** Gives a place back, once however often it is called. */
export type Release = () => void

/** Counts relays, from the start of their handshake on. */
export class Caps {
  readonly #limits: CapLimits
  readonly #permits = new Permits()
  readonly #handshakes = new MinuteCounts()

  constructor(limits: CapLimits) {
    this.#limits = limits
  }

  /** Counts a public handshake of a client address. False when it is one too many in this minute. */
  allowsPublicHandshake(address: string): boolean {
    return this.#handshakes.allows(network(address), this.#limits.publicHandshakesPerMinute)
  }

  /** Takes a place in this process, which every relay needs. Undefined when it is full. */
  acquireProcess(): Release | undefined {
    return this.#acquire('process', this.#limits.maxRelays)
  }

  /** Takes one of the places that are not kept for trading, which every other relay needs. Undefined when they are full. */
  acquireUnreserved(): Release | undefined {
    const { maxRelays } = this.#limits
    return this.#acquire('unreserved', maxRelays - Math.floor(maxRelays / TRADING_SHARE))
  }

  /** Takes a place for a trading relay of a session. Undefined when it has all it may have. */
  acquireSession(key: string): Release | undefined {
    return this.#acquire(`session:${key}`, this.#limits.maxPerSession)
  }

  /** Takes a place for a public relay of a client address. Undefined when it has all it may have. */
  acquireAddress(address: string): Release | undefined {
    return this.#acquire(`address:${network(address)}`, this.#limits.maxPublicPerIp)
  }

  #acquire(key: string, limit: number): Release | undefined {
    if (!this.#permits.acquire(key, limit)) return undefined
    let held = true
    return () => {
      if (held) this.#permits.release(key)
      held = false
    }
  }
}
