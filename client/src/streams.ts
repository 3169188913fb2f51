import { jitter } from './backoff.ts'
import { notify, report, SocketError } from './errors.ts'
import { errorOf } from './exchange.ts'
import type { Link } from './link.ts'
import { isCommand } from './operations.ts'
import type { Message, SocketStatus } from './socket-status.ts'

/** A listener of a stream. */
interface Subscriber {
  readonly listener: (message: Message) => void
  readonly onError: (error: SocketError) => void
}

/** A subscription at the trading service, which all its subscribers share. */
interface Stream {
  readonly message: Message
  readonly subscribers: Set<Subscriber>
  /** The `req_id` of the latest request for the stream; 0 before there is one. */
  id: number
  hasReply: boolean
  /** How often it has been refused in a row. */
  refusals: number
  /** The subscription ids of the trading service. One request may open several. */
  readonly upstream: Set<string>
}

/** Refusals that pass: too many requests, and a subscription that the trading service has not forgotten yet. */
const PASSING = /^(RateLimit|AlreadySubscribed)$/
/** The minimum delay before a refused stream is requested again. */
const AGAIN_MS = 1000
/** How long a stream without subscribers is kept, because a component may be mounted again at once. */
const GRACE_MS = 100

/** Streams that survive reconnects. Equal ones share one subscription, because the trading service refuses a second. */
export class Streams {
  readonly #link: Link
  readonly #nextId: () => number
  readonly #streams = new Map<string, Stream>()
  /** By `req_id`; undefined if the stream has since been stopped or requested again. */
  readonly #byId = new Map<number, Stream | undefined>()
  /** The subscription ids that the trading service has been asked to forget, by the `req_id` of that request. */
  readonly #forgetting = new Map<number, string>()

  constructor(link: Link, nextId: () => number) {
    this.#link = link
    this.#nextId = nextId
  }

  /**
   * @returns a function that stops the stream
   * @throws TypeError if the message may change something
   */
  subscribe(message: Message, listener: Subscriber['listener'], onError: Subscriber['onError'] = report): () => void {
    // A stream is requested again after every reconnect, so a command could be executed twice.
    if (isCommand(message)) throw new TypeError('only operations that read can be subscribed to')
    // As it will be sent: without the properties that are undefined. A copy, because the page may change its object.
    const { req_id: _ours, ...rest } = JSON.parse(JSON.stringify({ ...message, subscribe: 1 })) as Message
    const key = JSON.stringify(Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1)))
    const stream: Stream = this.#streams.get(key) ?? {
      message: rest,
      subscribers: new Set(),
      id: 0,
      hasReply: false,
      refusals: 0,
      upstream: new Set(),
    }
    const subscriber = { listener, onError }
    stream.subscribers.add(subscriber)
    this.#streams.set(key, stream)
    const { state, code } = this.#link.status
    if (state === 'ended') queueMicrotask(() => this.#end(stream, code))
    // The first message, such as a history, comes only once, so a later subscriber needs a new request.
    else if (stream.id === 0 || stream.hasReply) this.#request(stream)
    return () => {
      if (!stream.subscribers.delete(subscriber) || stream.subscribers.size > 0) return
      setTimeout(() => {
        if (stream.subscribers.size > 0 || this.#streams.get(key) !== stream) return
        this.#streams.delete(key)
        this.#retire(stream)
      }, GRACE_MS)
    }
  }

  /** Requests every stream on a new connection. */
  up(): void {
    this.#forgetting.clear()
    this.#byId.clear()
    for (const stream of this.#streams.values()) {
      stream.upstream.clear()
      stream.id = 0
      if (stream.subscribers.size > 0) this.#request(stream)
    }
  }

  /** Forgets the subscription ids of a lost connection. After the last connection, every stream ends with an error. */
  down({ state, code }: SocketStatus): void {
    for (const stream of this.#streams.values()) {
      stream.upstream.clear()
      stream.id = 0
      if (state === 'ended') this.#end(stream, code)
    }
  }

  /** Passes a message to the subscribers of its stream. */
  take(message: Message): void {
    const id = Number(message['req_id'])
    const upstream = (message['subscription'] as { id?: string } | undefined)?.id
    const stream = this.#byId.get(id)
    // If it was refused, the next message of the subscription makes the package ask again.
    this.#forgetting.delete(id)
    if (!stream) {
      // A late message of a stopped stream is forgotten. Any other subscription may belong to a command.
      if (upstream !== undefined && this.#byId.has(id)) this.#forget([upstream])
      return
    }
    stream.hasReply = true
    if (upstream !== undefined) stream.upstream.add(upstream)
    const error = errorOf(message)
    if (error && PASSING.test(error.code)) {
      const again = (): void => void (this.#byId.get(id) === stream && this.#request(stream))
      setTimeout(again, AGAIN_MS + jitter(stream.refusals++))
    } else stream.refusals = 0
    notify(stream.subscribers, ({ listener, onError }) => (error ? onError(error) : listener(message)))
  }

  #request(stream: Stream): void {
    if (!this.#link.isUp) return
    this.#retire(stream)
    stream.upstream.clear()
    stream.id = this.#nextId()
    stream.hasReply = false
    this.#byId.set(stream.id, stream)
    this.#link.send(JSON.stringify({ ...stream.message, req_id: stream.id }))
  }

  /** Ends the present subscription of a stream. */
  #retire({ id, upstream }: Stream): void {
    if (id > 0) this.#byId.set(id, undefined)
    this.#forget(upstream)
  }

  #forget(ids: Iterable<string>): void {
    if (!this.#link.isUp) return
    const underWay = new Set(this.#forgetting.values())
    for (const forget of ids) {
      if (underWay.has(forget)) continue
      const req_id = this.#nextId()
      this.#forgetting.set(req_id, forget)
      this.#link.send(JSON.stringify({ forget, req_id }))
    }
  }

  #end({ subscribers }: Stream, closeCode: number | undefined): void {
    const ended = new Set(subscribers)
    subscribers.clear()
    const error = new SocketError('ended', `the connection has ended: ${closeCode}`, { closeCode })
    notify(ended, ({ onError }) => onError(error))
  }
}
