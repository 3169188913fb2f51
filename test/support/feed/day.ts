import { setTimeout as delay } from 'node:timers/promises'
import { randomFrom } from '../../../sandbox/upstream/market.ts'
import type { Closed } from '../browser/browser-socket.ts'
import type { MeasuredServer } from '../server/measured-server.ts'
import { until } from '../time/until.ts'
import type { MarketUpstream } from './market-upstream.ts'
import { ALL_SYMBOLS } from './script.ts'
import { WATCHED, WatchingMember, type Watched } from './watching-member.ts'

const JOIN_AT_ONCE = 50
/** Moves of all prices while some members join, and the time between two of them. */
const MOVES = 10
const MOVE_MS = 5
/** Until the feed is back, its members are told, and upstream has let all streams go that nobody wants. */
const RECOVERY_MS = 40_000

/** Members that come and go on a server with PUBLIC_FEED=shared. */
export class Day {
  readonly #upstream: MarketUpstream
  readonly #server: MeasuredServer
  readonly #random: () => number
  readonly #members = new Set<WatchingMember>()
  /** How many prices each symbol has had. */
  #counts: Readonly<Record<string, number>> = {}

  constructor(upstream: MarketUpstream, server: MeasuredServer, seed: number) {
    this.#upstream = upstream
    this.#server = server
    this.#random = randomFrom(seed)
  }

  get size(): number {
    return this.#members.size
  }

  /** What members that are there have missed, or received twice. */
  get faults(): string[] {
    return [...this.#members].flatMap((member) => member.faults)
  }

  /** Moves all prices. */
  async move(): Promise<void> {
    this.#counts = await this.#upstream.emit(ALL_SYMBOLS)
  }

  /** Has members join until there are so many, while prices move. */
  async joinUpTo(count: number): Promise<void> {
    while (this.#members.size < count) {
      const batch = Array.from({ length: Math.min(count - this.#members.size, JOIN_AT_ONCE) }, () =>
        this.join(choice(this.#random)),
      )
      const joined = Promise.all(batch)
      // Histories are on their way meanwhile.
      for (let moves = 0; moves < MOVES; moves++) {
        await this.move()
        await delay(MOVE_MS)
      }
      for (const member of await joined) this.#members.add(member)
    }
  }

  /** A new member, which does not belong to the day. */
  join(watched: readonly Watched[]): Promise<WatchingMember> {
    const { port, publicUrl } = this.#server
    return WatchingMember.join(`ws://127.0.0.1:${port}/ws/public`, publicUrl, watched)
  }

  /** Has about this share of the members leave. */
  leave(share: number): void {
    for (const member of [...this.#members].filter(() => this.#random() < share)) {
      member.leave()
      this.#members.delete(member)
    }
  }

  /**
   * Waits until each member has the newest price of each of its streams. Those that were told to come back are dropped.
   * @returns the streams that do not get there
   */
  async late(): Promise<string[]> {
    const late = (): string[] => [...this.#members].flatMap((member) => member.lateFor(this.#counts))
    const isOver = (): boolean => late().length === 0 || this.faults.length > 0
    await until(isOver, 'each member has the newest prices', RECOVERY_MS).catch(() => undefined)
    const all = late()
    for (const member of [...this.#members].filter(({ end }) => end !== undefined)) this.#members.delete(member)
    return all
  }

  /** Ends upstream's connections, and moves prices, which members with streams miss. @returns how these are closed */
  async lose(how: 'close' | 'reset'): Promise<Closed[]> {
    await this.#upstream.order({ do: 'lose', how })
    await this.move()
    const streaming = [...this.#members].filter(({ watched }) => watched.length > 0)
    await until(() => streaming.every(({ end }) => end !== undefined), 'all members are told', RECOVERY_MS)
    for (const member of streaming) this.#members.delete(member)
    return streaming.flatMap(({ end }) => end ?? [])
  }

  /** Waits until upstream has as many streams as members want. @returns those that run and those that are wanted, by subject */
  async streams(): Promise<{ running: string[]; wanted: string[] }> {
    const distinct = new Set([...this.#members].flatMap(({ watched }) => watched))
    const wanted = named([...distinct].map(({ subject }) => subject))
    let running: string[] = []
    const isEqual = async (): Promise<boolean> => {
      running = named((await this.#upstream.state()).connections.flat())
      return running.length === wanted.length
    }
    await until(isEqual, 'upstream has the streams that are wanted', RECOVERY_MS).catch(() => undefined)
    return { running, wanted }
  }

  /** Has everybody leave. @returns the least bytes that the server uses after one of so many garbage collections */
  async end(collections: number): Promise<number> {
    this.leave(1)
    await until(async () => (await this.#server.relays()) === 0, 'the server has seen all members leave', RECOVERY_MS)
    return this.#server.usedBytes(collections)
  }
}

/** The names of streams in order. */
function named(subjects: readonly Watched['subject'][]): string[] {
  return subjects.map((subject) => subject.join(' ')).toSorted()
}

/** None to three streams. */
function choice(random: () => number): Watched[] {
  const count = Math.floor(random() * 4)
  const chosen = Array.from({ length: count }, () => WATCHED[Math.floor(random() * WATCHED.length)])
  const bySubject = new Map(
    chosen.flatMap((watched) => (watched === undefined ? [] : [[watched.subject.join(' '), watched]])),
  )
  // Whether upstream allows one connection two streams of ticks of a symbol is not known.
  return [...bySubject.values()]
}
