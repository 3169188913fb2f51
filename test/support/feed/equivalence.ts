import type { MarketUpstream } from './market-upstream.ts'
import { type Deliver, Member } from './member.ts'
import { difference, digest } from './received-messages.ts'
import { type Action, ALL_SYMBOLS, type Script, type Step, textFor } from './script.ts'

/** A server that members connect to. */
export interface Served {
  /** Address of the public socket. */
  readonly url: string
  readonly origin: string
  /** How its messages reach members; as they are by default. */
  readonly deliver?: Deliver
}

/** Both servers between the same market and their own members. */
export interface Arena {
  readonly upstream: MarketUpstream
  /** Gives each member an upstream socket of its own. */
  readonly alone: Served
  /** The server whose answers are compared. */
  readonly shared: Served
  /** How long a member waits for a message that it is owed. */
  readonly patienceMs?: number
}

/** More than any message takes on a slow machine. */
const PATIENCE_MS = 3000

const deliverAsIs: Deliver = (_members, member, text) => member.take(text)

/**
 * Plays a script on both servers at once, and compares what each member received.
 * @returns the first difference, undefined if there is none
 */
export async function play(script: Script, arena: Arena): Promise<string | undefined> {
  const game = new Game(script, arena)
  try {
    await game.open()
    for (const [at, step] of script.steps.entries()) {
      const why = await game.step(step, at)
      if (why !== undefined) return game.difference() ?? `step ${at}: ${why}, which makes no difference`
    }
    return (await game.last()) ?? game.difference()
  } finally {
    game.close()
  }
}

class Game {
  readonly #upstream: MarketUpstream
  readonly #alone: Member[]
  readonly #shared: Member[]
  readonly #patienceMs: number

  constructor({ members }: Script, { upstream, alone, shared, patienceMs = PATIENCE_MS }: Arena) {
    this.#patienceMs = patienceMs
    this.#upstream = upstream
    this.#alone = membersOf(alone, members)
    this.#shared = membersOf(shared, members)
  }

  async open(): Promise<void> {
    for (const member of [...this.#alone, ...this.#shared]) await member.opened()
  }

  close(): void {
    for (const member of [...this.#alone, ...this.#shared]) member.close()
  }

  /** @returns what did not happen */
  async step(step: Step, number: number): Promise<string | undefined> {
    if ('symbols' in step) await this.#move(step.symbols, step.times)
    else for (const [at, action] of step.entries()) await this.#act(action, number * 100 + at)
    const missing = await this.#quiet()
    if (!('symbols' in step)) this.#pause(step)
    return missing
  }

  /** Lets everybody read, moves all prices once more and asks everybody for the time, so that what is too much is seen. */
  async last(): Promise<string | undefined> {
    for (const member of [...this.#alone, ...this.#shared]) member.pause(false)
    const early = await this.#quiet()
    if (early !== undefined) return early
    await this.#move(ALL_SYMBOLS)
    for (const member of [...this.#alone, ...this.#shared]) member.send('{"time":1,"req_id":999}')
    return this.#quiet()
  }

  difference(): string | undefined {
    for (const [at, { transcripts }] of this.#alone.entries()) {
      const others = this.#shared[at]?.transcripts ?? []
      for (const [index, transcript] of transcripts.entries()) {
        const other = others[index] ?? { asked: [], received: [] }
        const found = difference(transcript, other)
        if (found !== undefined) return `member ${at}, connection ${index}, ${found}`
      }
    }
    return undefined
  }

  /**
   * Moves prices, and waits until both servers have read them. Members alone would not tell: a stream of the feed may run for
   * members that read nothing, or for nobody, and whoever joins it next gets its newest message.
   */
  async #move(symbols: readonly string[], times?: number): Promise<void> {
    await this.#upstream.emit(symbols, times)
    await this.#upstream.order({ do: 'settle' })
  }

  async #act(action: Action, number: number): Promise<void> {
    if (action.do === 'sendAll') return this.#sendAll(action.text)
    const at = action.member % this.#alone.length
    const both = [this.#alone[at], this.#shared[at]].filter((member) => member !== undefined)
    switch (action.do) {
      case 'send':
        for (const member of both) if (!member.isPaused) member.send(textFor(at, action.text))
        break
      case 'forget':
        // A stream that lingers keeps its id when it is subscribed to again, so both ids must be the latest.
        await this.#quiet()
        if (this.#alone[at]?.isPaused === false) this.#forget(at, action, number)
        break
      case 'reconnect':
        await Promise.all(both.map((member) => member.reconnect()))
        break
      case 'resume':
        for (const member of both) member.pause(false)
        break
      case 'pause':
    }
  }

  /** Has members read no more once all is quiet. They ask nothing meanwhile, since nobody could tell when that is answered. */
  #pause(actions: readonly Action[]): void {
    for (const action of actions) {
      if (action.do !== 'pause') continue
      const at = action.member % this.#alone.length
      for (const members of [this.#alone, this.#shared]) members[at]?.pause(true)
    }
  }

  #sendAll(text: string): void {
    for (const members of [this.#alone, this.#shared])
      for (const [at, member] of members.entries()) if (!member.isPaused) member.send(textFor(at, text))
  }

  /** Forgets the same stream in both worlds, whose ids differ. */
  #forget(at: number, { stream, isForeign }: Action & { do: 'forget' }, number: number): void {
    const owner = (isForeign ? at + 1 : at) % this.#alone.length
    const [alone, shared] = [this.#alone, this.#shared].map((members) => idsByStream(members[owner]))
    const streams = [...(alone?.keys() ?? [])].filter((name) => shared?.has(name)).toSorted()
    const name = streams[stream % Math.max(1, streams.length)] ?? ''
    const [id, sharedId] = [alone?.get(name), shared?.get(name)]
    if (id === undefined || sharedId === undefined) return
    // Two members of the feed may know a stream by the same id, which is then not foreign.
    if (owner !== at && [...idsByStream(this.#shared[at]).values()].includes(sharedId)) return
    const text = (id: string): string => `{"forget":"${id}","req_id":${10_000 + number}}`
    this.#alone[at]?.send(text(id), `forget ${number}`)
    this.#shared[at]?.send(text(sharedId), `forget ${number}`)
  }

  /** Waits until every member that reads has what it is owed, which the members alone show. @returns what does not come */
  async #quiet(): Promise<string | undefined> {
    const missing = await Promise.all(
      this.#alone.map(async (member, at) => {
        const other = this.#shared[at]
        if (member.isPaused || other === undefined) return undefined
        await member.flushed()
        const isComplete = await other.reached(member.received.length, this.#patienceMs)
        return isComplete
          ? undefined
          : `member ${at} has ${other.received.length} of ${member.received.length} messages`
      }),
    )
    return missing.find((why) => why !== undefined)
  }
}

/** The ids of all streams that a member has or had. */
function idsByStream(member: Member | undefined): Map<string, string> {
  const streams = member === undefined ? [] : digest(member).streams
  return new Map([...streams].map(([id, stream]) => [stream, id]))
}

function membersOf({ url, origin, deliver = deliverAsIs }: Served, count: number): Member[] {
  const members: Member[] = []
  while (members.length < count) members.push(new Member(url, origin, (member, text) => deliver(members, member, text)))
  return members
}
