import { notify, report, SocketError } from './errors.ts'
import { errorOf } from './exchange.ts'
import type { Link } from './link.ts'
import { isCommand } from './operations.ts'
import type { Message, SocketStatus } from './socket-status.ts'

/** One who wants a stream. */
interface Subscriber {
  readonly listener: (message: Message) => void
  readonly onError: (error: SocketError) => void
}

/** One subscription upstream, however many want it. */
interface Stream {
  readonly message: Message
  readonly subscribers: Set<Subscriber>
  /** Of the request that made it; changes with every connection. */
  id: number
  isAnswered: boolean
  /** Its ids upstream: one request may open several. */
  readonly upstream: Set<string>
}

/** A stream that nobody wants is kept for a moment, since a component may be mounted again at once. */
const GRACE_MS = 100

/** Subscriptions that outlive connections. Equal ones share one upstream, which refuses a second. */
export class Streams {
  readonly #link: Link
  readonly #nextId: () => number
  readonly #streams = new Map<string, Stream>()
  /** By the id of the request; undefined: of a stream that was ended or made anew since. */
  readonly #byId = new Map<number, Stream | undefined>()
  readonly #forgotten = new Set<string>()

  constructor(link: Link, nextId: () => number) {
    this.#link = link
    this.#nextId = nextId
  }

  /** @returns what ends it */
  subscribe(
    message: Message,
    listener: Subscriber['listener'],
    onError: Subscriber['onError'] = report,
  ): () => void {
    // It would be sent again after every reconnect.
    if (isCommand(message)) throw new TypeError('only what reads can be subscribed to')
    const { req_id: _ours, ...rest } = message
    const key = JSON.stringify(Object.entries({ ...rest, subscribe: 1 }).sort(([a], [b]) => (a < b ? -1 : 1)))
    const known = this.#streams.get(key)
    const stream: Stream = known ?? {
      message: rest,
      subscribers: new Set(),
      id: 0,
      isAnswered: false,
      upstream: new Set(),
    }
    const subscriber = { listener, onError }
    stream.subscribers.add(subscriber)
    this.#streams.set(key, stream)
    const { state, code } = this.#link.status
    if (state === 'ended') queueMicrotask(() => this.#end(stream, code))
    // What came first cannot be had again, so somebody who joins later has the stream made anew for all.
    else if (stream.id === 0 || stream.isAnswered) this.#make(stream)
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

  /** A new connection knows nothing. */
  up(): void {
    this.#forgotten.clear()
    this.#byId.clear()
    for (const stream of this.#streams.values()) {
      stream.upstream.clear()
      stream.id = 0
      if (stream.subscribers.size > 0) this.#make(stream)
    }
  }

  down({ state, code }: SocketStatus): void {
    for (const stream of this.#streams.values()) {
      stream.upstream.clear()
      stream.id = 0
      if (state === 'ended') this.#end(stream, code)
    }
  }

  take(message: Message): void {
    const id = Number(message['req_id'])
    const upstream = (message['subscription'] as { id?: string } | undefined)?.id
    const stream = this.#byId.get(id)
    if (!stream) {
      // Only of a stream: another message may be the subscription of a command.
      if (upstream !== undefined && this.#byId.has(id)) this.#forget([upstream])
      return
    }
    stream.isAnswered = true
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

  #make(stream: Stream): void {
    if (!this.#link.isUp) return
    this.#forget(stream.upstream)
    stream.upstream.clear()
    if (stream.id > 0) this.#byId.set(stream.id, undefined)
    stream.id = this.#nextId()
    stream.isAnswered = false
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
