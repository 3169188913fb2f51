import type { Config } from '../../../config/config.ts'
import type { ConnectionDependencies } from './connection.ts'
import { StreamLink, type Carried } from './stream-link.ts'

type PoolLimits = Pick<Config['feed'], 'maxSockets' | 'subscriptionsPerSocket' | 'reconnectSpreadMs'>

/** Spreads the streams over upstream connections, of which there is a limited number. Each carries a limited number of streams. */
export class StreamPool {
  readonly #deps: ConnectionDependencies
  readonly #limits: PoolLimits
  readonly #links: StreamLink[] = []

  constructor(deps: ConnectionDependencies, limits: PoolLimits) {
    this.#deps = deps
    this.#limits = limits
  }

  get openSockets(): number {
    return this.#links.filter(({ connection }) => connection.isOpen).length
  }

  get retryingSockets(): number {
    return this.#links.filter(({ connection }) => connection.isRetrying).length
  }

  get places(): number {
    return this.#limits.maxSockets * this.#limits.subscriptionsPerSocket
  }

  /** How many places are taken, each by one stream. */
  get takenPlaces(): number {
    let taken = 0
    for (const { streams } of this.#links) taken += streams.size
    return taken
  }

  /**
   * Finds a connection for a stream, preferably an open one on which upstream is not silent, and has it subscribe there. If all
   * are full, the stream without browsers that was unused longest gives way.
   * @param except the connection that the stream has left, because upstream said that it has the stream there already
   * @returns false when there is no room
   */
  place(stream: Carried, except?: StreamLink): boolean {
    const links = this.#links.filter((link) => link !== except)
    const roomy = links.filter(({ streams }) => streams.size < this.#limits.subscriptionsPerSocket)
    const heard = roomy.filter((each) => !each.connection.isSilent)
    const best = heard.find((each) => each.connection.isOpen) ?? heard[0]
    const link = best ?? this.#add() ?? roomy[0] ?? this.#makeRoom(links)
    if (link === undefined) return false
    stream.link = link
    link.add(stream)
    return true
  }

  end(): void {
    for (const link of this.#links) link.end()
  }

  #add(): StreamLink | undefined {
    const { maxSockets, reconnectSpreadMs } = this.#limits
    if (this.#links.length >= maxSockets) return undefined
    const link = new StreamLink(this.#deps, reconnectSpreadMs)
    this.#links.push(link)
    return link
  }

  /** Ends a stream without browsers. @returns its connection */
  #makeRoom(links: readonly StreamLink[]): StreamLink | undefined {
    const unused = links.flatMap(({ streams }) => [...streams]).filter(({ unusedSince }) => unusedSince !== undefined)
    const [oldest] = unused.toSorted((one, other) => (one.unusedSince ?? 0) - (other.unusedSince ?? 0))
    oldest?.end()
    return oldest?.link
  }
}
