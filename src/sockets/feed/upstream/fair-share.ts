import { network } from '../../../limits/networks.ts'
import { MinuteCounts } from '../../../limits/minute-counts.ts'
import type { Browser } from './browser.ts'

/** How long a refusal by upstream counts: its limits are by the minute. */
const PRESSURE_MS = 60_000

/** An address may start as many streams as this many browsers may have. */
const BROWSERS_PER_ADDRESS = 5

/**
 * Shares upstream's limit of requests between the addresses of browsers. That limit is not known: as long as upstream takes all
 * requests, none is held back here. Once it has refused one, all browsers of an address together may send as many requests in a
 * minute as a single one, until upstream has refused none for a minute.
 *
 * A list of symbols is one request of its browser and many of this server. So that lists alone cannot use up upstream's limit, the
 * browsers of an address start a limited number of subscriptions with them in a minute, whether upstream accepts these or not.
 */
export class FairShare {
  /** How many streams the browsers of an address may start: at all while places are scarce, by lists in a minute. */
  readonly streamsPerAddress: number
  readonly #requestsPerMinute: number
  readonly #counts = new MinuteCounts()
  /** Of the symbols of a list, all but the first, which its request counts for. */
  readonly #listed = new MinuteCounts()
  /** In ms of the monotonic clock. */
  #pressureUntil = 0

  /** @param requestsPerMinute of a browser @param maxSubscriptions of a browser */
  constructor(requestsPerMinute: number, maxSubscriptions: number) {
    this.#requestsPerMinute = requestsPerMinute
    this.streamsPerAddress = BROWSERS_PER_ADDRESS * maxSubscriptions
  }

  /**
   * Counts a request of a browser. False when it exceeds a limit of the browser or of its address.
   * @param count how many requests this server sends upstream for it, all of which count for the address
   */
  admits(browser: Pick<Browser, 'address' | 'spend'>, count = 1): boolean {
    const isPressed = performance.now() < this.#pressureUntil
    const address = network(browser.address)
    if (isPressed && this.#counts.isFull(address, this.#requestsPerMinute)) return false
    if (!browser.spend()) return false
    this.#counts.allows(address, Number.POSITIVE_INFINITY)
    if (count === 1) return true
    if (!this.#listed.allows(address, this.streamsPerAddress, count - 1)) return false
    return this.#counts.allows(address, Number.POSITIVE_INFINITY, count - 1)
  }

  /** Notes that upstream has refused a request because there were too many. */
  refused(): void {
    this.#pressureUntil = performance.now() + PRESSURE_MS
  }
}
