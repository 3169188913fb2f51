import { jitter } from '../base/backoff.ts'
import { Carrier, type Stream } from './carrier.ts'
import { notify, report, SocketError } from '../base/errors.ts'
import { errorOf, isCommand } from './exchange.ts'
import { parseJson, writeJson } from '../base/json.ts'
import type { Link } from './link.ts'
import type { Message, SocketStatus } from './socket-status.ts'

/** Refusals that pass: too many requests, and a subscription that the trading service has not forgotten yet. */
const PASSING = /^(RateLimit|AlreadySubscribed)$/

/**
 * Streams that survive reconnects. Equal ones share one subscription, because the trading service refuses a second. It also
 * refuses some that are not equal, such as the ticks of a symbol and a history that goes on with them: where more links
 * are allowed, the later one gets another link.
 */
export class Streams {
  readonly #nextId: () => number
  readonly #openLink: (number: number) => Link
  readonly #more: number
  readonly #streams = new Map<string, Stream>()
  /** By the number of their link. The first one is always there. */
  readonly #carriers: [Carrier, ...(Carrier | undefined)[]]

  /**
   * @param openLink opens the link with this number, from 0
   * @param more how many links there may be besides the first
   */
  constructor(openLink: (number: number) => Link, nextId: () => number, more: number) {
    this.#openLink = openLink
    this.#nextId = nextId
    this.#more = more
    this.#carriers = [new Carrier(openLink(0), nextId)]
  }

  /** The first link, which carries all that is no stream. */
  get link(): Link {
    return this.#carriers[0].link
  }

  /** The status of a link that is not open, if any, so that `open` means that every stream is up to date. */
  get status(): SocketStatus {
    const all = this.#carriers.flatMap((carrier) => carrier?.link.status ?? [])
    return all.find(({ state }) => !/open|ended/.test(state)) ?? this.link.status
  }

  /**
   * @returns a function that stops the stream
   * @throws TypeError if the message may change something
   */
  subscribe(
    message: Message,
    listener: (message: Message) => void,
    onError: (error: SocketError) => void = report,
  ): () => void {
    // A stream is requested again after every reconnect, so a command could be executed twice.
    if (isCommand(message)) throw new TypeError('only reads can be subscribed to')
    // As it will be sent: without the properties that are undefined. A copy, because the page may change its object.
    const { req_id: _ours, ...rest } = parseJson(writeJson({ ...message, subscribe: 1 })) as Message
    const key = JSON.stringify(Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1)))
    const stream: Stream = this.#streams.get(key) ?? {
      key,
      message: rest,
      subscribers: new Set(),
      carrier: this.#carriers[0],
      id: 0,
      hasReply: false,
      refusals: 0,
      upstream: new Set(),
    }
    const subscriber = { listener, onError }
    stream.subscribers.add(subscriber)
    this.#streams.set(key, stream)
    const { state, code } = this.link.status
    if (state === 'ended') queueMicrotask(() => this.#end(stream, code))
    // The first message, such as a history, comes only once, so a later subscriber needs a new request.
    else if (stream.id === 0 || stream.hasReply) stream.carrier.request(stream)
    return () => {
      if (!stream.subscribers.delete(subscriber) || stream.subscribers.size > 0) return
      // A component may be mounted again at once.
      setTimeout(() => {
        if (stream.subscribers.size > 0 || this.#streams.get(key) !== stream) return
        this.#streams.delete(key)
        stream.carrier.retire(stream)
        this.#left(stream.carrier)
      }, 100)
    }
  }

  /** Requests every stream of a link on its new connection. */
  up(link: Link): void {
    for (const stream of this.#lost(link)) if (stream.subscribers.size > 0) stream.carrier.request(stream)
  }

  /** Forgets the subscription ids of a lost connection. After the last connection of a link, its streams end with an error. */
  down(link: Link, { state, code }: SocketStatus): void {
    const streams = this.#lost(link)
    if (state !== 'ended') return
    for (const stream of streams) this.#end(stream, code)
    const [first, ...more] = this.#carriers
    for (const carrier of more) if (carrier && (carrier.link === link || first.link === link)) this.#close(carrier)
  }

  /** Passes a message to the subscribers of its stream. */
  take(link: Link, message: Message): void {
    const carrier = this.#carriers.find((carrier) => carrier?.link === link)
    const stream = carrier?.take(message)
    if (!carrier || !stream) return
    const error = errorOf(message)
    if (error && PASSING.test(error.code)) {
      const isTaken = this.#more > 0 && error.code !== 'RateLimit'
      const mayPass = isTaken && this.#mayPass(stream)
      if (isTaken && !mayPass && this.#move(stream)) return
      const { id } = stream
      const again = (): unknown => stream.id === id && stream.subscribers.size > 0 && stream.carrier.request(stream)
      setTimeout(again, 1000 + jitter(stream.refusals++))
      if (mayPass) return
    } else stream.refusals = 0
    notify(stream.subscribers, ({ listener, onError }) => (error ? onError(error) : listener(message)))
  }

  /**
   * True after the first refusal, unless all other streams of the link go on: then the subscription that is in the way may
   * be about to end.
   */
  #mayPass(stream: Stream): boolean {
    const others = [...this.#streams.values()].filter((other) => other !== stream && other.carrier === stream.carrier)
    return stream.refusals === 0 && !(others.length > 0 && others.every(({ subscribers }) => subscribers.size > 0))
  }

  /**
   * Moves a refused stream to the next link.
   * @returns false if there is none; then the stream begins again with the first one, later
   */
  #move(stream: Stream): boolean {
    const before = stream.carrier
    const next = this.#carriers.indexOf(before) + 1
    before.retire(stream)
    stream.id = 0
    const isMoved = next <= this.#more
    stream.carrier = isMoved
      ? (this.#carriers[next] ??= new Carrier(this.#openLink(next), this.#nextId))
      : this.#carriers[0]
    if (isMoved) stream.carrier.request(stream)
    this.#left(before)
    return isMoved
  }

  /** Closes a link after its last stream, unless it is the first. */
  #left(carrier: Carrier): void {
    if (carrier === this.#carriers[0]) return
    // A chart may have changed its symbol.
    setTimeout(() => {
      if (![...this.#streams.values()].some((stream) => stream.carrier === carrier)) this.#close(carrier)
    }, 1000)
  }

  #close(carrier: Carrier): void {
    const number = this.#carriers.indexOf(carrier)
    if (number > 0) this.#carriers[number] = undefined
    carrier.link.close()
  }

  /** The streams of a link, none of which has a subscription any more. */
  #lost(link: Link): Stream[] {
    const streams = [...this.#streams.values()].filter(({ carrier }) => carrier.link === link)
    this.#carriers.find((carrier) => carrier?.link === link)?.reset()
    for (const stream of streams) {
      stream.upstream.clear()
      stream.id = 0
    }
    return streams
  }

  #end({ key, subscribers }: Stream, closeCode: number | undefined): void {
    this.#streams.delete(key)
    const error = new SocketError('ended', `the connection has ended: ${closeCode}`, { closeCode })
    notify(subscribers, ({ onError }) => onError(error))
    subscribers.clear()
  }
}
