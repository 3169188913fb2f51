import { printed, type Members } from './canonical-json.ts'
import type { Connection, UpstreamStream } from './connection.ts'
import { type Demand, strings } from './demand.ts'
import { Dice } from './dice.ts'
import type { Market } from './market.ts'
import type { Behaviour } from './random-upstream.ts'

/** More than the server may take. */
const TOO_BIG = JSON.stringify('x'.repeat(70_000))

/** What upstream answers, and which streams it begins. */
export class Answers {
  /** From now on it does all that is promised in docs/upstream.md, at once. */
  isCalm = false
  /** Has a connection learn the prices of a symbol up to a place. */
  catchUp: (connection: Connection, symbol: string, place: number) => void = () => undefined
  readonly #market: Market
  readonly #behaviour: Behaviour
  #dice = new Dice(0)
  /** Whether a connection has the ticks of a symbol once, be it by `ticks` or by `ticks_history`. */
  #isStrict = true
  readonly #waiting: (() => unknown)[] = []
  /** The place at which each stream began. None of their histories ends earlier. */
  readonly #begun = new Map<string, number>()
  /** Ids of streams that are over, which are given to others. */
  readonly #free: string[] = []
  #ids = 0

  constructor(market: Market, behaviour: Behaviour) {
    this.#market = market
    this.#behaviour = behaviour
  }

  get isLate(): boolean {
    return this.#behaviour.clock === 'late' && !this.isCalm
  }

  /** Begins a session. */
  begin(dice: Dice): void {
    this.#dice = dice
    this.#isStrict = !this.#behaviour.losses || dice.of('strict')() < 0.5
    this.isCalm = false
  }

  /** Takes a request. */
  asked(connection: Connection, text: string): void {
    const demand = this.#market.demandOf(text)
    if (demand.operation === 'ping' && demand.error === undefined) {
      return this.#reply(connection, demand, answerOf('ping', '"pong"'))
    }
    const random = this.#dice.of(text.replace(/"req_id":\d+/, ''))
    if (this.#chance(random, 'losses', 0.02)) connection.isOwing = true
    else if (!this.isLate) this.#answer(connection, demand, random)
    else this.#waiting.push(() => this.#answer(connection, demand, random))
  }

  /** Answers the requests that have waited longest. */
  give(count: number): void {
    for (const answer of this.#waiting.splice(0, count)) answer()
  }

  /** The place of the newest price that a connection knows. */
  known(connection: Connection, symbol: string): number {
    const { known } = connection
    if (!known.has(symbol)) {
      const lag = this.isLate ? Math.floor(this.#dice.of(symbol)() * 10) : 0
      known.set(symbol, this.#market.now(symbol) - lag)
    }
    return known.get(symbol) ?? 0
  }

  /** Sends a price. */
  send(connection: Connection, stream: UpstreamStream, at: number): void {
    const { demand, subject, id } = stream
    stream.hasSent = true
    const isSplit = this.#behaviour.losses && at % 31 === 0
    this.#reply(connection, demand, this.#market.next(demand, subject, at, id), id, isSplit)
  }

  /** Ends a stream with an error. A browser may have asked for the symbol in a list, so the error of one of ticks has its id. */
  end(connection: Connection, stream: UpstreamStream): void {
    stream.isOver = true
    this.#refuse(connection, stream.demand, 'Ended', stream.demand.members.has('ticks') ? stream.id : undefined)
  }

  /** Notes that a stream is over. */
  over(stream: UpstreamStream): void {
    if (!stream.isOver && this.#behaviour.losses) this.#free.push(stream.id)
    stream.isOver = true
  }

  #answer(connection: Connection, demand: Demand, random: () => number): void {
    if (!connection.isOpen) return
    const { operation, error, subjects, isStream } = demand
    if (error !== undefined) return this.#reply(connection, demand, errorOf(demand, error))
    if (operation === 'forget') return this.#forget(connection, demand, random)
    if (operation === 'forget_all') return this.#forgetAll(connection, demand)
    if (this.#isRefused(connection, demand, random)) return
    if (isStream) return this.#begin(connection, demand, random)
    for (const subject of subjects.length === 0 ? [undefined] : subjects) {
      const at = subject === undefined ? this.#market.now() : this.#from(connection, demand, subject.name)
      const answer = this.#market.first(demand, subject, at)
      const isTooBig = this.#chance(random, 'losses', 0.01)
      this.#reply(connection, demand, isTooBig ? new Map([['big', TOO_BIG]]) : answer, undefined, isTooBig)
      if (this.#chance(random, 'losses', 0.05)) this.#waiting.push(() => this.#reply(connection, demand, answer))
    }
  }

  #isRefused(connection: Connection, demand: Demand, random: () => number): boolean {
    const { isStream, subjects } = demand
    const isEqual = ({ subject, demand: other }: UpstreamStream): boolean =>
      subjects.some(({ name }) => name === subject.name) && (this.#isStrict || other.operation === demand.operation)
    const isTaken = isStream && connection.running().some(isEqual)
    if (isTaken || (isStream && this.#chance(random, 'refusals', 0.02))) {
      this.#refuse(connection, demand, 'AlreadySubscribed')
      return true
    }
    if (!this.#chance(random, 'refusals', 0.08)) return false
    this.#refuse(connection, demand, random() < 0.5 ? 'RateLimit' : 'Odd')
    return true
  }

  #begin(connection: Connection, demand: Demand, random: () => number): void {
    for (const subject of demand.subjects) {
      const free = this.#behaviour.losses && random() < 0.5 ? this.#free.shift() : undefined
      const id = free ?? `id-${++this.#ids}`
      const at = this.#from(connection, demand, subject.name)
      this.#begun.set(subject.name, at)
      const stream: UpstreamStream = { id, demand, subject, isOver: false, hasSent: false }
      connection.streams.push(stream)
      const first = this.#market.first(demand, subject, at, id)
      const reply = (): void => {
        stream.hasSent = true
        this.#reply(connection, demand, first, id)
      }
      // Some prices may come before a history. The newest price need not be sent at once, unless no later one makes up for it.
      if (!this.#chance(random, 'losses', 0.3)) reply()
      else
        this.#waiting.push(
          () => (demand.operation === 'ticks_history' || !(stream.hasSent || stream.isOver)) && reply(),
        )
    }
  }

  /** Where a history on this connection ends. */
  #from(connection: Connection, { subjects }: Demand, name: string): number {
    const symbol = subjects.find((subject) => subject.name === name)?.symbol ?? ''
    this.known(connection, symbol)
    this.catchUp(connection, symbol, this.#begun.get(name) ?? 0)
    return this.known(connection, symbol)
  }

  #forget(connection: Connection, demand: Demand, random: () => number): void {
    const id = demand.members.get('forget')
    const stream = connection.running().find((each) => JSON.stringify(each.id) === id)
    if (this.#chance(random, 'refusals', 0.1)) return this.#refuse(connection, demand, 'RateLimit')
    // Now and then it goes on all the same.
    if (stream !== undefined && !this.#chance(random, 'losses', 0.1)) this.over(stream)
    if (this.#chance(random, 'refusals', 0.1)) return this.#refuse(connection, demand, 'Odd')
    this.#reply(connection, demand, answerOf('forget', stream === undefined ? '0' : '1'))
  }

  #forgetAll(connection: Connection, demand: Demand): void {
    const types = new Set(strings(demand.members.get('forget_all')))
    const streams = connection.running().filter(({ subject }) => types.has(subject.type))
    for (const stream of streams) this.over(stream)
    const ids = streams.map(({ id }) => JSON.stringify(id))
    this.#reply(connection, demand, answerOf('forget_all', `[${ids.join(',')}]`))
  }

  #refuse(connection: Connection, demand: Demand, code: string, id?: string): void {
    this.#reply(connection, demand, errorOf(demand, `{"code":"${code}","message":"${code}"}`), id)
  }

  /** Sends an answer or a message of a stream. */
  #reply(connection: Connection, { members }: Demand, body: Members, id?: string, isSplit = false): void {
    const isUnnamed = id === undefined && this.#chance(this.#dice.of('head'), 'losses', 0.2)
    const head = headOf(members).filter(([name]) => name !== 'req_id' || !isUnnamed)
    connection.write(new Map([...head, ...body, ...idOf(id)]), isSplit)
  }

  #chance(random: () => number, what: 'losses' | 'refusals', probability: number): boolean {
    return random() < probability && !this.isCalm && this.#behaviour[what]
  }
}

/** What a message repeats of its request. */
export function headOf(request: Members): [string, string][] {
  const own = ['req_id', 'passthrough'].flatMap((name): [string, string][] => {
    const value = request.get(name)
    return value === undefined ? [] : [[name, value]]
  })
  return [['echo_req', printed(request)], ...own]
}

export function idOf(id: string | undefined): [string, string][] {
  return id === undefined ? [] : [['subscription', `{"id":${JSON.stringify(id)}}`]]
}

export function errorOf({ msgType }: Demand, error: string): Members {
  return answerOf(msgType, error, 'error')
}

/** An answer of which a browser knows all. */
export function answerOf(msgType: string, value: string, name = msgType): Members {
  return new Map([
    ['msg_type', JSON.stringify(msgType)],
    [name, value],
  ])
}
