import type { LinkDependencies } from './upstream-link.ts'
import { StreamLink } from './stream-link.ts'
import type { Stream } from './stream.ts'

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
  readonly #lingering = new Set<Stream>()
  /** Whether upstream has refused a stream on the connection of one with the same name, as of `ticks` and a history of ticks. */
  #refusesEqualNames = false

  constructor(deps: LinkDependencies, limits: PoolLimits) {
    this.#deps = deps
    this.#limits = limits
  }

  get openSockets(): number {
    return this.#links.filter(({ isOpen }) => isOpen).length
  }

  /** Whether more than half of the places are taken. A connection for symbol arrays has none left for a single symbol. */
  get isScarce(): boolean {
    const { maxSockets, subscriptionsPerSocket } = this.#limits
    let taken = 0
    for (const { isForArrays, load } of this.#links) {
      taken += isForArrays && load > 0 ? subscriptionsPerSocket : load
    }
    return taken > (maxSockets * subscriptionsPerSocket) / 2
  }

  /**
   * Finds a connection for a stream, and has it subscribe there. If all are full, streams without subscribers give way.
   * @param refusedBy the connection that it has left, because upstream says that it has this stream there already
   * @returns false when there is no room
   */
  place(stream: Stream, refusedBy?: StreamLink): boolean {
    const isExplained = refusedBy?.mightConfuse(stream) === true
    if (isExplained) this.#refusesEqualNames = true
    // Its names keep the stream from the connection for as long as they are taken there.
    const except = isExplained ? undefined : refusedBy
    let link = this.#find(stream, except) ?? this.#turn(stream.isArray, except) ?? this.#add(stream.isArray)
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
  lingers(stream: Stream): void {
    this.#lingering.add(stream)
  }

  /** Notes that a stream has a subscriber again, or has ended. */
  lingersNoMore(stream: Stream): void {
    this.#lingering.delete(stream)
  }

  close(): void {
    for (const link of this.#links) link.close()
  }

  #find(stream: Stream, except: StreamLink | undefined): StreamLink | undefined {
    const { subscriptionsPerSocket } = this.#limits
    const links = this.#links.filter(
      (link) =>
        link !== except && link.isForArrays === stream.isArray && link.hasRoomFor(stream, subscriptionsPerSocket),
    )
    return links.find((link) => !link.mightConfuse(stream)) ?? (this.#isApart(stream) ? undefined : links[0])
  }

  /** Takes a connection that carries nothing any more for the other kind of streams. */
  #turn(isForArrays: boolean, except: StreamLink | undefined): StreamLink | undefined {
    if (isForArrays && !this.#mayHaveArrays) return undefined
    const unused = this.#links.find((link) => link !== except && link.load === 0)
    if (unused !== undefined) unused.isForArrays = isForArrays
    return unused
  }

  #add(isForArrays: boolean): StreamLink | undefined {
    const { maxSockets, reconnectSpreadMs } = this.#limits
    if (this.#links.length >= maxSockets || (isForArrays && !this.#mayHaveArrays)) return undefined
    const link = new StreamLink(this.#deps, reconnectSpreadMs, isForArrays)
    this.#links.push(link)
    return link
  }

  /**
   * Whether one more connection may be for symbol arrays. A symbol can be in any number of arrays, but upstream takes it once on
   * a connection: if arrays could be on every connection, a few browsers could leave no place for the symbol itself.
   */
  get #mayHaveArrays(): boolean {
    const forArrays = this.#links.filter((link) => link.isForArrays).length
    return forArrays < Math.floor(this.#limits.maxSockets / 2)
  }

  /** Whether the end of a stream without subscribers could make room for another one. */
  #givesWayTo(lingering: Stream, stream: Stream, except: StreamLink | undefined): boolean {
    const { link } = lingering
    if (link === undefined || link === except || lingering.isArray !== stream.isArray) return false
    return !this.#isApart(stream) || !link.mightConfuse(stream, lingering)
  }

  /** Whether a stream needs a connection without its names. Upstream is known to take a symbol of arrays once. */
  #isApart({ isArray }: Stream): boolean {
    return isArray || this.#refusesEqualNames
  }
}
