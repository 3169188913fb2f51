import type { LinkDependencies } from './upstream-link.ts'
import { StreamLink, type Carried } from './stream-link.ts'

/** How many upstream connections there may be for streams, and how much each carries. */
export interface PoolLimits {
  readonly maxSockets: number
  readonly subscriptionsPerSocket: number
  readonly reconnectSpreadMs: number
}

/** Spreads the streams over upstream connections. */
export class StreamPool {
  readonly #deps: LinkDependencies
  readonly #limits: PoolLimits
  readonly #links: StreamLink[] = []
  /** The streams without subscribers, the longest unused first. */
  readonly #lingering = new Set<Carried>()
  /** Whether upstream has refused a stream where another one had the same name, as `ticks` and a history of ticks have. */
  #refusesEqualNames = false

  constructor(deps: LinkDependencies, limits: PoolLimits) {
    this.#deps = deps
    this.#limits = limits
  }

  get openSockets(): number {
    return this.#links.filter(({ isOpen }) => isOpen).length
  }

  get retryingSockets(): number {
    return this.#links.filter(({ isRetrying }) => isRetrying).length
  }

  get places(): number {
    return this.#limits.maxSockets * this.#limits.subscriptionsPerSocket
  }

  /** How many places are taken, each by one stream. */
  get takenPlaces(): number {
    let taken = 0
    for (const { load } of this.#links) taken += load
    return taken
  }

  /**
   * Finds a connection for a stream, and has it subscribe there. If all are full, streams without subscribers give way.
   * @param refusedBy the connection that the stream has left, because upstream said that it has the stream there already
   * @returns false when there is no room
   */
  place(stream: Carried, refusedBy?: StreamLink): boolean {
    const isExplained = refusedBy?.mightConfuse(stream) === true
    if (isExplained) this.#refusesEqualNames = true
    // If a name is the reason, the stream may come back to that connection once the name is free there.
    const except = isExplained ? undefined : refusedBy
    let link = this.#find(stream, except) ?? this.#add()
    while (link === undefined) {
      const oldest = [...this.#lingering].find((each) => this.#givesWayTo(each, stream, except))
      if (oldest === undefined) return false
      oldest.end()
      link = this.#find(stream, except)
    }
    stream.link = link
    link.add(stream)
    return true
  }

  /** Notes that a stream has lost its last subscriber. */
  lingers(stream: Carried): void {
    this.#lingering.add(stream)
  }

  /** Notes that a stream has a subscriber again, or has ended. */
  lingersNoMore(stream: Carried): void {
    this.#lingering.delete(stream)
  }

  close(): void {
    for (const link of this.#links) link.close()
  }

  #find(stream: Carried, except: StreamLink | undefined): StreamLink | undefined {
    const { subscriptionsPerSocket } = this.#limits
    const links = this.#links.filter((link) => link !== except && link.load < subscriptionsPerSocket)
    return links.find((link) => !link.mightConfuse(stream)) ?? (this.#refusesEqualNames ? undefined : links[0])
  }

  #add(): StreamLink | undefined {
    const { maxSockets, reconnectSpreadMs } = this.#limits
    if (this.#links.length >= maxSockets) return undefined
    const link = new StreamLink(this.#deps, reconnectSpreadMs)
    this.#links.push(link)
    return link
  }

  /** Whether the end of a stream without subscribers could make room for another one. */
  #givesWayTo(lingering: Carried, stream: Carried, except: StreamLink | undefined): boolean {
    const { link } = lingering
    if (link === undefined || link === except) return false
    return !this.#refusesEqualNames || !link.mightConfuse(stream, lingering)
  }
}
