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
  /** The subscription ids of the trading service. One request may open several. */
  readonly upstream: Set<string>
}

/** How long a stream without subscribers is kept, because a component may be mounted again at once. */
const GRACE_MS = 100

/** Streams that survive reconnects. Equal ones share one subscription, because the trading service refuses a second. */
export class Streams {
  readonly #link: Link
  readonly #nextId: () => number
  readonly #streams = new Map<string, Stream>()
  /** By `req_id`; undefined if the stream has since been stopped or requested again. */
  readonly #byId = new Map<number, Stream | undefined>()
  readonly #forgotten = new Set<string>()

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
    const { req_id: _ours, ...rest } = message
    const key = JSON.stringify(Object.entries({ ...rest, subscribe: 1 }).sort(([a], [b]) => (a < b ? -1 : 1)))
    const stream: Stream = this.#streams.get(key) ?? {
      message: rest,
      subscribers: new Set(),
      id: 0,
      hasReply: false,
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
        this.#byId.set(stream.id, undefined)
        this.#forget(stream.upstream)
      }, GRACE_MS)
    }
  }

  /** Requests every stream on a new connection. */
  up(): void {
    this.#forgotten.clear()
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
    if (!stream) {
      // A late message of a stopped stream is forgotten. Any other subscription may belong to a command.
      if (upstream !== undefined && this.#byId.has(id)) this.#forget([upstream])
      return
    }
    stream.hasReply = true
    if (upstream !== undefined) stream.upstream.add(upstream)
    const error = errorOf(message)
    const each = [...stream.subscribers]
    if (error)
      notify(
        each.map(({ onError }) => onError),
        error,
      )
    else
      notify(
        each.map(({ listener }) => listener),
        message,
      )
  }

  #request(stream: Stream): void {
    if (!this.#link.isUp) return
    this.#forget(stream.upstream)
    stream.upstream.clear()
    if (stream.id > 0) this.#byId.set(stream.id, undefined)
    stream.id = this.#nextId()
    stream.hasReply = false
    this.#byId.set(stream.id, stream)
    this.#link.send({ ...stream.message, subscribe: 1, req_id: stream.id })
  }

  #forget(ids: Iterable<string>): void {
    if (!this.#link.isUp) return
    for (const id of ids) {
      if (this.#forgotten.has(id)) continue
      this.#forgotten.add(id)
      this.#link.send({ forget: id, req_id: this.#nextId() })
    }
  }

  #end({ subscribers }: Stream, closeCode: number | undefined): void {
    const each = [...subscribers].map(({ onError }) => onError)
    subscribers.clear()
    notify(each, new SocketError('ended', `the connection has ended: ${closeCode}`, { closeCode }))
  }
}
