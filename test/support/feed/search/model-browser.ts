import { WebSocket } from 'ws'
import type { Closed } from '../../browser/browser-socket.ts'
import { nextEvent } from '../../time/until.ts'
import { answerOf, errorOf, headOf, idOf } from './answers.ts'
import { type Asked, Book } from './book.ts'
import { CanonicalJson, type Members, printed } from './canonical-json.ts'
import { type Subject } from './demand.ts'
import type { Market } from './market.ts'
import type { Behaviour } from './random-upstream.ts'

/** Messages shown with a fault. */
const SHOWN = 12

/** Delivers a message to a browser. A faulty one is a fault that must be found. */
export type Deliver = (browser: ModelBrowser, text: string) => void

/** Where browsers connect, and what they know of upstream. */
export interface Place {
  readonly url: string
  readonly origin: string
  readonly market: Market
  readonly behaviour: Behaviour
  readonly deliver?: Deliver | undefined
}

/** A browser that checks all that it receives against what upstream says about the same. */
export class ModelBrowser {
  readonly faults: string[] = []
  end: Closed | undefined
  isLeaving = false
  readonly socket: WebSocket
  readonly book: Book
  readonly #place: Place
  readonly #texts: string[] = []

  constructor(place: Place) {
    const { url, origin, market, behaviour, deliver = (browser, text) => browser.take(text) } = place
    this.#place = place
    this.book = new Book(market, behaviour)
    this.socket = new WebSocket(url, { origin, perMessageDeflate: false, maxPayload: 0 })
    this.socket.on('error', () => undefined)
    this.socket.on('message', (data: Buffer) => deliver(this, data.toString()))
    this.socket.on('close', (code, reason) => (this.end = { code, reason: reason.toString() }))
  }

  async opened(): Promise<void> {
    if (this.socket.readyState === WebSocket.CONNECTING) await nextEvent(this.socket, 'open')
  }

  get isOpen(): boolean {
    return this.socket.readyState === WebSocket.OPEN && !this.isLeaving
  }

  send(text: string): void {
    this.#texts.push(`> ${text}`)
    this.book.asks(text)
    this.socket.send(text)
  }

  /** Leaves as a closed tab does, or as a page does. */
  leave(isClean = false): void {
    this.isLeaving = true
    if (isClean) this.socket.close()
    else this.socket.terminate()
  }

  /** What it still waits for. */
  get late(): string[] {
    return this.end !== undefined || this.isLeaving ? [] : this.book.late
  }

  /** What was wrong, with how it was closed. */
  get allFaults(): string[] {
    const { end, isLeaving, faults } = this
    if (end === undefined || isLeaving) return faults
    const { losses } = this.#place.behaviour
    // A message that was too big is their own affair.
    const isKnown = losses && (end.code === 1009 || (end.code === 1013 && end.reason === 'upstream_lost'))
    if (!isKnown) return [...faults, `closed with ${end.code} ${end.reason}`]
    const isMissing = end.code === 1009 || this.book.hasLost
    return isMissing ? faults : [...faults, 'closed although nothing was lost']
  }

  take(text: string): void {
    if (this.isLeaving) return
    this.#texts.push(`< ${text}`)
    this.#texts.splice(0, this.#texts.length - SHOWN)
    try {
      const fault = this.#check(CanonicalJson.members(text))
      if (fault !== undefined) this.#fault(fault)
    } catch (error) {
      this.#fault(String(error))
    }
  }

  /** @returns what is wrong with a message */
  #check(members: Members): string | undefined {
    const candidates = this.book.openFor(members.get('echo_req'))
    if (candidates.length === 0) return 'not asked, or after the last message'
    const subscription = members.get('subscription')
    const id = subscription === undefined ? undefined : (JSON.parse(subscription) as { readonly id: string }).id
    if (members.has('error')) return this.#refused(candidates, members, id)
    if (id !== undefined) return this.#followed(candidates, members, id)
    return this.#answered(candidates, members)
  }

  #refused(candidates: readonly Asked[], members: Members, id: string | undefined): string | undefined {
    const error = members.get('error') ?? ''
    const { code } = JSON.parse(error) as { readonly code: string }
    const asked = this.book.refuse(candidates, code, id)
    if (asked === undefined) return `refused with ${code}`
    const { demand } = asked
    const expected = demand.error ?? error
    const type = demand.error === undefined ? (members.get('msg_type') ?? '""') : JSON.stringify(demand.msgType)
    return different(asked, members, errorOf({ ...demand, msgType: JSON.parse(type) as string }, expected), id)
  }

  #answered(candidates: readonly Asked[], members: Members): string | undefined {
    const { market } = this.#place
    const asked = candidates.find(
      ({ state, demand, code }) => state === 'asked' && !demand.isStream && code === undefined,
    )
    if (asked === undefined) return 'not asked'
    const { demand } = asked
    const { operation, subjects } = demand
    const value = members.get(operation ?? '') ?? ''
    if (operation === 'forget' || operation === 'forget_all') {
      const fault = operation === 'forget' ? this.book.forgot(asked, value) : this.book.forgotAll(asked, value)
      return fault ?? different(asked, members, answerOf(operation, value))
    }
    if (operation === 'ping') {
      asked.state = 'over'
      return different(asked, members, answerOf('ping', '"pong"'))
    }
    const subject = subjectOf(subjects, members)
    asked.missing.delete(subject?.name ?? '')
    if (asked.missing.size === 0) asked.state = 'over'
    const at = Number(members.get('at'))
    const fault = different(asked, members, market.first(demand, subject, at))
    return fault ?? this.#outdated(at, subject)
  }

  #followed(candidates: readonly Asked[], members: Members, id: string): string | undefined {
    const { market } = this.#place
    const at = Number(members.get('at'))
    const following = candidates.find(({ streams }) => streams.has(id))
    const stream = following?.streams.get(id)
    if (following === undefined || stream === undefined) {
      const subject = subjectOf(candidates[0]?.demand.subjects ?? [], members)
      const asked = candidates.find(({ missing, code }) => code === undefined && missing.has(subject?.name ?? ''))
      if (asked === undefined || subject === undefined) return 'a stream that was not asked for, or that has another id'
      const first = market.first(asked.demand, subject, at, id)
      const fault = this.book.begin(asked, { subject, id, at, first }) ?? different(asked, members, first, id)
      return fault ?? this.#outdated(at, subject)
    }
    const { demand } = following
    const { subject, first } = stream
    // Equal prices of a second, and equal states of a candle, cannot be told apart: the history may be taken for one that ends elsewhere.
    const isNext =
      at === stream.at + 1 || (first !== undefined && isEqual(first, market.first(demand, subject, at - 1, id)))
    const last = stream.at
    Object.assign(stream, { at, first: undefined })
    if (!isNext) return `${at} after ${last}`
    return different(following, members, market.next(demand, subject, at, id), id)
  }

  /** With a shared clock the first answer has the newest price. */
  #outdated(at: number, subject: Subject | undefined): string | undefined {
    const { market, behaviour } = this.#place
    const now = market.now(subject?.symbol)
    return at > now || (at < now && behaviour.clock === 'shared') ? `${at} instead of ${now}` : undefined
  }

  #fault(what: string): void {
    this.faults.push([what, ...this.#texts].join('\n  '))
  }
}

/** Which of its subjects a message is about. A request with an array of symbols has an answer for each. */
function subjectOf(subjects: readonly Subject[], members: Members): Subject | undefined {
  if (subjects.length < 2) return subjects[0]
  const { symbol } = JSON.parse(members.get('tick') ?? '{}') as { readonly symbol?: string }
  return subjects.find((subject) => subject.symbol === symbol)
}

/** How a message differs from what it has to be. */
function different({ demand }: Asked, members: Members, body: Members, id?: string): string | undefined {
  const [is, expected] = [printed(members), printed(new Map([...headOf(demand.members), ...body, ...idOf(id)]))]
  return is === expected ? undefined : `not as expected:\n  ${expected}\n  ${is}`
}

/** Whether two histories have the same prices. */
function isEqual(one: Members, other: Members): boolean {
  return ['history', 'candles'].some((name) => one.has(name) && one.get(name) === other.get(name))
}
