import { type Members, printed } from './canonical-json.ts'
import { type Demand, strings, type Subject } from './demand.ts'
import type { Market } from './market.ts'
import type { Behaviour } from './random-upstream.ts'

/** A stream of a browser. */
interface Stream {
  readonly subject: Subject
  readonly id: string
  /** The place of its newest price. */
  at: number
  /** Its first message, until there is a second one. */
  first: Members | undefined
  isBeingForgotten?: boolean
}

/** A request of a browser. */
export interface Asked {
  readonly demand: Demand
  state: 'asked' | 'live' | 'over'
  /** The code of the error that it must be answered with. */
  readonly code: string | undefined
  /** The subjects without an answer. */
  readonly missing: Map<string, Subject>
  /** By id. */
  readonly streams: Map<string, Stream>
  /** The requests that a `forget` or `forget_all` ends. */
  ends: readonly Asked[]
  isBeingForgotten: boolean
  /** Whether it ends with its first answer, since a `forget_all` has waited for that in vain. */
  endsWhenAnswered: boolean
  readonly askedAt: number
}

/** How long a `forget_all` waits for subscriptions that have no response. */
const UNANSWERED_MS = 5000

/** What a browser has asked for, what has become of that, and what it is owed. */
export class Book {
  /** The ids of all streams that it has had. */
  readonly ids = new Set<string>()
  readonly #market: Market
  /** Whether upstream refuses and ends streams by itself. */
  readonly #isWild: boolean
  readonly #asked: Asked[] = []
  readonly #byEcho = new Map<string, Asked[]>()
  /** The subjects that it has streams of, in the order of its requests. */
  readonly #taken = new Map<string, Asked>()
  #isToBeClosed = false

  constructor(market: Market, { losses, refusals }: Behaviour) {
    this.#market = market
    this.#isWild = losses || refusals
  }

  /** Notes a request. */
  asks(text: string): void {
    const demand = this.#market.demandOf(text)
    const { subjects, isStream, error, operation } = demand
    const isTaken = isStream && !this.#isWild && subjects.some(({ name }) => this.#taken.has(name))
    const asked: Asked = {
      demand,
      state: 'asked',
      code: error ? (JSON.parse(error) as { readonly code: string }).code : isTaken ? 'AlreadySubscribed' : undefined,
      missing: new Map(subjects.map((subject) => [subject.name, subject])),
      streams: new Map(),
      ends: [],
      isBeingForgotten: false,
      endsWhenAnswered: false,
      askedAt: performance.now(),
    }
    if (isStream && asked.code === undefined) for (const { name } of subjects) this.#taken.set(name, asked)
    if (operation === 'forget' && error === undefined) this.#asksToForget(asked)
    if (operation === 'forget_all' && error === undefined) this.#asksToForgetAll(asked)
    this.#asked.push(asked)
    const echo = printed(demand.members)
    this.#byEcho.set(echo, [...(this.#byEcho.get(echo) ?? []), asked])
  }

  /** The requests with this `echo_req` that are not over. */
  openFor(echo = ''): readonly Asked[] {
    return (this.#byEcho.get(echo) ?? []).filter(({ state }) => state !== 'over')
  }

  /** Notes the first message of a stream. @returns what is wrong with it */
  begin(asked: Asked, stream: Stream): string | undefined {
    const owner = this.#asked.find(({ streams }) => streams.has(stream.id))
    // Where upstream gives ids again, the other stream was lost with its connection, unless the browser has asked to forget it.
    if (owner !== undefined && this.#isWild) {
      const isForgotten = owner.isBeingForgotten || owner.streams.get(stream.id)?.isBeingForgotten === true
      if (!isForgotten) this.#isToBeClosed = true
      this.#drop(owner, stream.id)
    }
    asked.state = 'live'
    asked.missing.delete(stream.subject.name)
    asked.streams.set(stream.id, stream)
    this.ids.add(stream.id)
    if (asked.endsWhenAnswered) this.#drop(asked, stream.id)
    return owner === undefined || this.#isWild ? undefined : 'the id of another stream'
  }

  /** The ids of the streams that it has and does not forget. */
  get liveIds(): string[] {
    return this.#asked
      .filter(({ isBeingForgotten }) => !isBeingForgotten)
      .flatMap(({ streams }) =>
        [...streams.values()].flatMap(({ id, isBeingForgotten }) => (isBeingForgotten ? [] : id)),
      )
  }

  /** Notes an error. @returns the request that may get it */
  refuse(candidates: readonly Asked[], code: string, id: string | undefined): Asked | undefined {
    const expecting = candidates.find((asked) => asked.state === 'asked' && asked.code === code)
    if (expecting !== undefined) {
      expecting.state = 'over'
      return expecting
    }
    if (!this.#isWild) return undefined
    const asked =
      candidates.find(({ streams }) => id === undefined || streams.has(id)) ??
      candidates.find(({ missing }) => missing.size > 0)
    if (asked === undefined) return undefined
    const [silent] = asked.missing.keys()
    if (id !== undefined && asked.streams.has(id)) this.#drop(asked, id)
    // One symbol of a list may be refused, or end, after the others have begun and before its first price.
    else if (asked.state === 'live' && silent !== undefined) asked.missing.delete(silent)
    else this.#over(asked)
    return asked
  }

  /** Notes the answer to a `forget`. @returns what is wrong with it */
  forgot(asked: Asked, value: string): string | undefined {
    asked.state = 'over'
    const [owner] = asked.ends
    const id = JSON.parse(asked.demand.members.get('forget') ?? '') as string
    if (owner === undefined) return value === '0' ? undefined : 'forgets what it has not'
    if (value === '1') return void this.#drop(owner, id)
    // The stream is lost: the browser is about to be closed.
    return this.#isWild ? undefined : 'does not forget'
  }

  /** Notes the answer to a `forget_all`. @returns what is wrong with it */
  forgotAll(asked: Asked, value: string): string | undefined {
    asked.state = 'over'
    const ids = asked.ends.flatMap(({ streams }) => [...streams.keys()])
    // One without an answer is lost, so that the browser is about to be closed, or upstream has not answered in time.
    const isUnanswered = asked.ends.some(({ state }) => state === 'asked')
    const isLate = this.#isWild && performance.now() - asked.askedAt >= UNANSWERED_MS
    for (const each of asked.ends) {
      each.endsWhenAnswered = each.state === 'asked' && (isLate || this.#waitsInVain(each))
      if (!each.endsWhenAnswered) this.#over(each)
    }
    if (this.#isWild) return undefined
    if (isUnanswered) return 'has not answered what it forgets'
    return strings(value).toSorted().join() === ids.toSorted().join()
      ? undefined
      : `forgets ${value} instead of ${ids.join()}`
  }

  /** What is missing: answers, and prices that are due. */
  get late(): string[] {
    const owed = this.#asked.flatMap(({ state, demand, missing, streams, isBeingForgotten }) => {
      if (state === 'over' || (isBeingForgotten && this.#isWild)) return []
      const silent = state === 'asked' ? ['answer'] : [...missing.keys()]
      const behind = [...streams.values()].filter(({ at, subject }) => at < this.#market.now(subject.symbol))
      const prices = behind.map(({ subject, at }) => `${subject.name} after ${at}`)
      return [...silent, ...prices].map((what) => `no ${what} for ${printed(demand.members)}`)
    })
    return this.#isToBeClosed ? [...owed, 'it is not closed'] : owed
  }

  /** Whether it may have missed something when upstream was lost. */
  get hasLost(): boolean {
    return this.#asked.some(({ state, demand }) => state === 'asked' || demand.isStream)
  }

  #asksToForget(asked: Asked): void {
    const id = JSON.parse(asked.demand.members.get('forget') ?? '') as string
    const owner = this.liveIds.includes(id) ? this.#asked.find(({ streams }) => streams.has(id)) : undefined
    const stream = owner?.streams.get(id)
    if (owner === undefined || stream === undefined) return
    stream.isBeingForgotten = true
    this.#free(owner, stream.subject)
    asked.ends = [owner]
  }

  #asksToForgetAll(asked: Asked): void {
    const types = strings(asked.demand.members.get('forget_all'))
    asked.ends = this.#asked.filter(
      ({ demand, state, code, isBeingForgotten }) =>
        demand.isStream &&
        code === undefined &&
        state !== 'over' &&
        !isBeingForgotten &&
        types.includes(demand.subjects[0]?.type ?? ''),
    )
    for (const each of asked.ends) {
      each.isBeingForgotten = true
      for (const subject of each.demand.subjects) this.#free(each, subject)
    }
  }

  /** Whether it waits for an equal request for which a `forget_all` has waited in vain: that is not waited for again. */
  #waitsInVain({ missing }: Asked): boolean {
    return this.#asked.some(
      ({ state, endsWhenAnswered, demand }) =>
        state === 'asked' && endsWhenAnswered && demand.subjects.some(({ name }) => missing.has(name)),
    )
  }

  #free(asked: Asked, { name }: Subject): void {
    if (this.#taken.get(name) === asked) this.#taken.delete(name)
  }

  /** One of its streams is over. */
  #drop(asked: Asked, id: string): void {
    asked.streams.delete(id)
    if (asked.streams.size + asked.missing.size === 0) this.#over(asked)
  }

  #over(asked: Asked): void {
    asked.state = 'over'
    asked.streams.clear()
    for (const subject of asked.demand.subjects) this.#free(asked, subject)
  }
}
