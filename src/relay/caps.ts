import { network } from '../http/client-address.ts'

/** How many relays there may be, per process. */
export interface CapLimits {
  readonly maxRelays: number
  readonly maxPerSession: number
  readonly maxPublicPerIp: number
}

/** Gives a place back, once however often it is called. */
export type Leave = () => void

/** Counts relays, from the start of their handshake on. */
export class Caps {
  readonly #limits: CapLimits
  readonly #counts = new Map<string, number>()

  constructor(limits: CapLimits) {
    this.#limits = limits
  }

  /** Takes a place in this process, which every relay needs. Undefined when it is full. */
  enterProcess(): Leave | undefined {
    return this.#enter('process', this.#limits.maxRelays)
  }

  /** Takes a place for a trading relay of a session. Undefined when it has all it may have. */
  enterSession(key: string): Leave | undefined {
    return this.#enter(`session:${key}`, this.#limits.maxPerSession)
  }

  /** Takes a place for a public relay of a client address. Undefined when it has all it may have. */
  enterAddress(address: string): Leave | undefined {
    return this.#enter(`address:${network(address)}`, this.#limits.maxPublicPerIp)
  }

  #enter(key: string, limit: number): Leave | undefined {
    const count = this.#counts.get(key) ?? 0
    if (count >= limit) return undefined
    this.#counts.set(key, count + 1)
    let held = true
    return () => {
      if (!held) return
      held = false
      const left = (this.#counts.get(key) ?? 1) - 1
      if (left === 0) this.#counts.delete(key)
      else this.#counts.set(key, left)
    }
  }
}
