import type { SocketError } from '../base/errors.ts'
import { writeJson } from '../base/json.ts'
import type { Link } from './link.ts'
import type { Message } from './socket-status.ts'

/** A subscription at the trading service, which all its subscribers share. */
export interface Stream {
  readonly key: string
  readonly message: Message
  readonly subscribers: Set<{
    readonly listener: (message: Message) => void
    readonly onError: (error: SocketError) => void
  }>
  carrier: Carrier
  /** The `req_id` of the latest request for the stream; 0 before there is one. */
  id: number
  hasReply: boolean
  /** How often it has been refused in a row. */
  refusals: number
  /** The subscription ids of the trading service. One request may open several. */
  readonly upstream: Set<string>
}

/** A link, and the subscriptions on its present connection. */
export class Carrier {
  declare readonly link: Link
  readonly #nextId: () => number
  /** By `req_id`; undefined if the stream has since been stopped or requested again. */
  readonly #byId = new Map<number, Stream | undefined>()
  /** The subscription ids that the trading service has been asked to forget, by the `req_id` of that request. */
  readonly #forgetting = new Map<number, string>()

  constructor(link: Link, nextId: () => number) {
    this.link = link
    this.#nextId = nextId
  }

  /** Forgets the subscriptions of a lost connection. */
  reset(): void {
    this.#forgetting.clear()
    this.#byId.clear()
  }

  request(stream: Stream): void {
    if (!this.link.isUp) return
    this.retire(stream)
    stream.id = this.#nextId()
    stream.hasReply = false
    this.#byId.set(stream.id, stream)
    this.link.send(writeJson({ ...stream.message, req_id: stream.id }))
  }

  /** Ends the present subscription of a stream. */
  retire({ id, upstream }: Stream): void {
    if (id > 0) this.#byId.set(id, undefined)
    this.#forget(upstream)
    upstream.clear()
  }

  /** Finds the stream of a message, and notes its subscription. */
  take(message: Message): Stream | undefined {
    const id = Number(message['req_id'])
    const upstream = (message['subscription'] as { id?: string } | undefined)?.id
    const stream = this.#byId.get(id)
    // If it was refused, the next message of the subscription makes the package ask again.
    this.#forgetting.delete(id)
    if (stream) {
      stream.hasReply = true
      if (upstream !== undefined) stream.upstream.add(upstream)
    }
    // A late message of a stopped stream is forgotten. Any other subscription may belong to a command.
    else if (upstream !== undefined && this.#byId.has(id)) this.#forget([upstream])
    return stream
  }

  #forget(ids: Iterable<string>): void {
    if (!this.link.isUp) return
    const underWay = new Set(this.#forgetting.values())
    for (const forget of ids) {
      if (underWay.has(forget)) continue
      const req_id = this.#nextId()
      this.#forgetting.set(req_id, forget)
      this.link.send(JSON.stringify({ forget, req_id }))
    }
  }
}
