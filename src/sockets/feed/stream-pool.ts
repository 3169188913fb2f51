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
   * @param except a connection that upstream does not want it on
   * @returns false when there is no room
   */
  place(stream: Stream, except?: StreamLink): boolean {
    let link = this.#find(stream, except) ?? this.#turn(stream.isArray, except) ?? this.#add(stream.isArray)
    while (link === undefined) {
      const oldest = [...this.#lingering].find((each) => givesWayTo(each, stream, except))
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
    return this.#links.find(
      (link) =>
        link !== except && link.isForArrays === stream.isArray && link.hasRoomFor(stream, subscriptionsPerSocket),
    )
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
}

/** Whether the end of a stream without subscribers could make room for another one. */
function givesWayTo(lingering: Stream, stream: Stream, except: StreamLink | undefined): boolean {
  const { link } = lingering
  return link !== except && lingering.isArray === stream.isArray && link?.couldReplace(lingering, stream) === true
}
