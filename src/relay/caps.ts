import { isIPv6 } from 'node:net'

/** How many relays there may be, per process. */
export interface CapLimits {
  readonly maxRelays: number
  readonly maxPerSession: number
  readonly maxPublicPerIp: number
}

/** Counts relays, from the start of their handshake on. */
export class Caps {
  readonly #limits: CapLimits
  readonly #counts = new Map<string, number>()
  #total = 0

  constructor(limits: CapLimits) {
    this.#limits = limits
  }

  /** Takes a place for a trading relay of a session. */
  enterSession(key: string): (() => void) | undefined {
    return this.#enter(key, this.#limits.maxPerSession)
  }

  /** Takes a place for a public relay of a client address. */
  enterAddress(address: string): (() => void) | undefined {
    return this.#enter(`address:${network(address)}`, this.#limits.maxPublicPerIp)
  }

  /** Undefined when it is full; else gives the place back, once however often it is called. */
  #enter(key: string, limit: number): (() => void) | undefined {
    const count = this.#counts.get(key) ?? 0
    if (count >= limit || this.#total >= this.#limits.maxRelays) return undefined
    this.#counts.set(key, count + 1)
    this.#total++
    let held = true
    return () => {
      if (!held) return
      held = false
      this.#total--
      const left = (this.#counts.get(key) ?? 1) - 1
      if (left === 0) this.#counts.delete(key)
      else this.#counts.set(key, left)
    }
  }
}

/** One household or server: an IPv4 address, or the /64 of an IPv6 one. */
export function network(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined) return mapped
  if (!isIPv6(address)) return address
  const [head = '', tail] = address.split('::', 2)
  const front = head === '' ? [] : head.split(':')
  const back = tail === undefined || tail === '' ? [] : tail.split(':')
  const groups =
    tail === undefined
      ? front
      : [...front, ...Array<string>(8 - front.length - back.length).fill('0'), ...back]
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`
}
