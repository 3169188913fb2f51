import { AsyncResource } from 'node:async_hooks'
import dns, { type LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { LOOKUP_PLACES } from '../config/thread-pool.ts'
import { judgeAfter } from '../time/judge-after.ts'
import { standstill } from '../time/standstill.ts'
import { routable } from './routes.ts'
import { inTurn } from './silent-addresses.ts'

/** The peers for whose names a place is kept, so that no other name can take all of them. */
const PEERS = ['redis', 'api', 'sockets', 'provider'] as const

/** The peer whose name is looked up. `other`: a host for which no place is kept. */
export type Peer = (typeof PEERS)[number] | 'other'

/** After this time a lookup is late: a second one begins beside it, and the last good addresses serve. */
const LATE_MS = 1000
/** Lookups of one name at once. */
const MAX_LOOKUPS = 2
/** How old addresses may be that serve while a lookup is late. */
const MAX_AGE_MS = 600_000
/** Names that are remembered. They come from the settings, from Redis and its Sentinels. */
const MAX_NAMES = 256

type Answer = Parameters<LookupFunction>[2]
type Options = Parameters<LookupFunction>[1]

interface Addresses {
  readonly addresses: readonly LookupAddress[]
  /** Ms of the clock of {@link standstill}. */
  readonly askedAt: number
}

/** From the first caller that has to wait for a name until all who wait for it have an answer. */
interface Round {
  readonly askers: Set<Peer>
  readonly waiting: Waiter[]
  begun: number
  unanswered: number
  /** Callers have waited for {@link LATE_MS}. */
  isLate: boolean
  /** The first lookup has run for {@link LATE_MS}. */
  maySecond: boolean
}

type Waiter = (error: NodeJS.ErrnoException | null, addresses: readonly LookupAddress[]) => void

interface Name {
  readonly host: string
  readonly options: Pick<dns.LookupOptions, 'family' | 'hints'>
  running: number
  round: Round | undefined
  last: Addresses | undefined
}

/** How the system looks up a name: like `dns.lookup` with `all`. */
type Resolve = (
  host: string,
  options: dns.LookupAllOptions,
  answer: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

/** Notified once for each round that has no answer in time. @param ageMs the age of the addresses that serve, if any do */
type OnLate = (host: string, ageMs: number | undefined) => void

/**
 * Looks up the names of all peers of this process. A lookup takes a thread until the name server answers or the system gives
 * up, and nothing can end it earlier. So whoever asks for the same name shares the lookups of it, and lookups are as many at
 * once as threads are lent to them, of which one is kept for each of {@link PEERS}.
 */
export class Names {
  readonly #places: number
  readonly #resolve: Resolve
  readonly #names = new Map<string, Name>()
  readonly #running = new Map<Peer, number>()
  #taken = 0
  onLate: OnLate | undefined

  constructor(places: number, resolve: Resolve) {
    this.#places = places
    this.#resolve = resolve
  }

  /** A function that looks up names for one peer, in place of `dns.lookup`. */
  for(peer: Peer): LookupFunction {
    return (host, options, answer) => this.#lookup(peer, host, options, answer)
  }

  /** Whether callers have waited for this name for a second, and there are no addresses that could serve meanwhile. */
  isUnresolved(host: string): boolean {
    const isIt = (name: Name): boolean => name.host === host.toLowerCase() && name.round?.isLate === true
    return this.#names.values().some((name) => isIt(name) && usable(name.last) === undefined)
  }

  #lookup(peer: Peer, host: string, options: Options, answer: Answer): void {
    const name = this.#nameOf(host, options)
    const round = (name.round ??= this.#open(name))
    round.askers.add(peer)
    const waiter = AsyncResource.bind(waiterOf(options, answer))
    const old = round.isLate ? usable(name.last) : undefined
    if (old !== undefined) return process.nextTick(waiter, null, old.addresses)
    round.waiting.push(waiter)
    this.#advance(name)
  }

  #nameOf(givenHost: string, { family, hints }: Options): Name {
    const host = givenHost.toLowerCase()
    const key = `${host} ${family ?? 0} ${hints ?? 0}`
    const known = this.#names.get(key)
    if (known !== undefined) return known
    if (this.#names.size >= MAX_NAMES) this.#forgetOne()
    const options = { ...(family !== undefined && { family }), ...(hints !== undefined && { hints }) }
    const name: Name = { host, options, running: 0, round: undefined, last: undefined }
    this.#names.set(key, name)
    return name
  }

  /** The oldest name that nobody waits for. */
  #forgetOne(): void {
    const idle = this.#names.entries().find(([, { running, round }]) => running === 0 && round === undefined)
    if (idle !== undefined) this.#names.delete(idle[0])
  }

  #open(name: Name): Round {
    const round: Round = {
      askers: new Set(),
      waiting: [],
      begun: 0,
      unanswered: 0,
      isLate: false,
      maySecond: false,
    }
    afterASecond(() => {
      if (name.round !== round) return
      round.isLate = true
      const old = usable(name.last)
      this.onLate?.(name.host, old && ageOf(old.askedAt))
      if (old !== undefined) for (const waiter of round.waiting.splice(0)) waiter(null, old.addresses)
    })
    return round
  }

  /** Begins the lookup that a name needs, if there is a place for it. */
  #advance(name: Name): void {
    const { round } = name
    if (round === undefined || name.running >= MAX_LOOKUPS || !this.#admits(round.askers)) return
    // The answer to one may be lost on the way. Without places that are kept, the second one could be that of another peer.
    if (round.begun === 0 || (round.begun === 1 && round.maySecond && this.#keepsPlaces)) this.#begin(name, round)
  }

  /** Whether a lookup is under way. It takes a thread, which nothing can end. */
  get isLookingUp(): boolean {
    return this.#taken > 0
  }

  get #keepsPlaces(): boolean {
    return this.#places > PEERS.length
  }

  #admits(askers: ReadonlySet<Peer>): boolean {
    const kept = PEERS.filter((peer) => !askers.has(peer) && !this.#running.get(peer)).length
    return this.#places - this.#taken > (this.#keepsPlaces ? kept : 0)
  }

  #begin(name: Name, round: Round): void {
    const askers = [...round.askers]
    const askedAt = standstill.now()
    const count = (by: 1 | -1): void => {
      this.#taken += by
      name.running += by
      for (const peer of askers) this.#running.set(peer, (this.#running.get(peer) ?? 0) + by)
    }
    count(1)
    round.unanswered++
    if (++round.begun === 1) {
      afterASecond(() => {
        round.maySecond = true
        if (name.round === round) this.#advance(name)
      })
    }
    const end = (): void => {
      count(-1)
      // A second lookup comes after every first one.
      for (const other of this.#names.values()) if (other.round?.begun === 0) this.#advance(other)
      for (const other of this.#names.values()) this.#advance(other)
    }
    this.#resolve(name.host, { ...name.options, all: true }, (error, addresses) => {
      if (error === null) {
        return void routable(addresses)
          .catch(() => addresses)
          .then((found) => this.#found(name, { addresses: found, askedAt }))
          .finally(end)
      }
      this.#failed(name, round, error)
      end()
    })
  }

  #found(name: Name, found: Addresses): void {
    // The answer that was asked for later counts.
    if (name.last === undefined || name.last.askedAt <= found.askedAt) name.last = found
    settle(name, null, found.addresses)
  }

  #failed(name: Name, round: Round, error: NodeJS.ErrnoException): void {
    round.unanswered--
    if (name.round !== round || round.unanswered > 0) return
    // No name server answered. That a name does not exist is an answer.
    const old = error.code === 'EAI_AGAIN' ? usable(name.last) : undefined
    if (old === undefined) return settle(name, error, [])
    this.onLate?.(name.host, ageOf(old.askedAt))
    settle(name, null, old.addresses)
  }
}

/** The names that this process looks up, at whatever `dns.lookup` is at that moment. */
export const names = new Names(LOOKUP_PLACES, (host, options, answer) => dns.lookup(host, options, answer))

function settle(name: Name, ...answer: Parameters<Waiter>): void {
  const { round } = name
  name.round = undefined
  for (const waiter of round?.waiting ?? []) waiter(...answer)
}

function waiterOf({ all }: Options, answer: Answer): Waiter {
  return (error, addresses) => {
    const ordered = inTurn(addresses)
    if (all === true) return answer(error, ordered)
    const [first] = ordered
    answer(error, first?.address ?? '', first?.family)
  }
}

/** Addresses that are young enough to serve while no newer ones come. */
function usable(last: Addresses | undefined): Addresses | undefined {
  return last !== undefined && ageOf(last.askedAt) <= MAX_AGE_MS ? last : undefined
}

function afterASecond(action: () => void): void {
  judgeAfter(LATE_MS, action, false)
}

function ageOf(askedAt: number): number {
  return standstill.now() - askedAt
}
