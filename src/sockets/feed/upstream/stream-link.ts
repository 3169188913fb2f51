import type { ConnectionOwner, Listener } from './connection-users.ts'
import { Backoff, Outage } from './recovery.ts'
import { Connection, type ConnectionDependencies } from './connection.ts'

/** How many subscriptions are renewed at a time, so that upstream does not get all of them in one burst. */
const RENEWED_AT_A_TIME = 8
/** After a refusal. Upstream counts requests by the minute, so it is asked again after a moment, and then less and less often. */
const REFUSED = { firstMs: 1000, longestMs: 30_000, jitter: 0.5 }
/** How long the others wait for one that upstream does not answer, and a `forget` for its answer. */
const ANSWER_MS = 10_000

/** A stream as its connection sees it. */
export interface Carried extends Listener {
  /** `unasked`: waits for its connection. `asked`: waits for its first message. */
  readonly phase: 'unasked' | 'asked' | 'live' | 'over'
  /** How many browsers have it. */
  readonly size: number
  /** When it lost its last browser, in ms of the monotonic clock. Undefined unless upstream sends it and no browser has it. */
  readonly unusedSince: number | undefined
  /** The id that upstream has given it. */
  readonly id: string | undefined
  /** The connection that carries it. Set by the pool. */
  link: StreamLink | undefined
  /** The request that upstream gets. */
  write(reqId: number): Buffer | string
  asked(reqId: number): void
  /** The connection is lost, or the browsers that wait for it have waited long enough. */
  lost(): void
  /** Another stream needs its place. */
  end(): void
}

/** An upstream connection that carries streams. When it is lost, it renews their subscriptions at the pace upstream allows. */
export class StreamLink implements ConnectionOwner {
  readonly kind = 'stream'
  readonly connection: Connection
  readonly streams = new Set<Carried>()
  readonly outage: Outage
  /** The streams that are being renewed, with the time when upstream was asked, in ms of the monotonic clock. */
  readonly #renewing = new Map<Carried, number>()
  readonly #backoff = new Backoff(REFUSED)

  constructor(deps: ConnectionDependencies, spreadMs: number) {
    this.outage = new Outage(spreadMs, () => this.#lose())
    this.connection = new Connection(deps, this)
  }

  /** Takes a stream over, and subscribes to it as soon as the connection is open. */
  add(stream: Carried): void {
    this.streams.add(stream)
    if (this.connection.isOpen) return this.#subscribe(stream)
    this.connection.open()
    // A stream that moves to this link brings its browsers with it.
    if (stream.size > 0) this.awaited()
  }

  /** A stream has ended or moves. Upstream takes requests in order, so there is room for another at once. */
  leave(stream: Carried): void {
    if (!this.streams.delete(stream)) return
    this.#settled(stream)
  }

  /** Ends a subscription upstream. Without an id, upstream has not started it: if it still does, see {@link unclaimed}. */
  forget(reqId: number, id: string | undefined): void {
    if (id === undefined) return this.connection.release(reqId)
    const unwanted = new UnwantedStream(this, id)
    this.connection.assign(reqId, unwanted)
    unwanted.forget(reqId)
  }

  /** A stream has its first message, so the next one can be renewed. */
  answered(stream: Carried): void {
    this.#backoff.reset()
    this.#settled(stream)
  }

  /** Upstream refuses to renew a subscription for now. */
  refused(stream: Carried): void {
    this.#backoff.wait(() => this.#renew())
    this.#settled(stream)
  }

  /** A browser waits for a stream that upstream has not been asked for. */
  awaited(): void {
    if (!this.connection.isOpen) this.outage.wait()
  }

  /** Upstream has started a stream so late that its request is no longer remembered, or sends it although it is forgotten. */
  unclaimed(reqId: number, subscriptionId: string): void {
    if (!this.has(subscriptionId)) this.forget(reqId, subscriptionId)
  }

  /** Whether a stream here has this subscription id. Upstream may give the id of a stream that has ended to another one. */
  has(id: string): boolean {
    return [...this.streams].some((stream) => stream.id === id)
  }

  isNeeded(): boolean {
    return this.streams.size > 0
  }

  opened(): void {
    this.outage.over()
    this.#renew()
  }

  /** The other streams do not wait for one that upstream does not answer. */
  beat(): void {
    for (const [stream, askedAt] of this.#renewing) {
      if (performance.now() - askedAt >= ANSWER_MS) this.#renewing.delete(stream)
    }
    this.#renew()
  }

  lost(): void {
    this.#endRenewing()
    // Browsers that have joined a stream that was still to be renewed go on waiting.
    if ([...this.streams].some(({ size }) => size > 0)) this.outage.wait()
  }

  end(): void {
    this.#endRenewing()
    this.outage.over()
    this.connection.end()
  }

  /** Sends the request of a stream. The connection must be open. */
  #subscribe(stream: Carried): void {
    stream.asked(this.connection.send((reqId) => stream.write(reqId), stream))
  }

  #endRenewing(): void {
    this.#renewing.clear()
    this.#backoff.end()
  }

  #settled(stream: Carried): void {
    if (this.#renewing.delete(stream)) this.#renew()
  }

  /** Subscribes to some of the streams that wait for it, first to streams that browsers wait for. */
  #renew(): void {
    if (!this.connection.isOpen || this.#backoff.isWaiting) return
    const unmade = [...this.streams].filter((stream) => stream.phase === 'unasked')
    if (unmade.length === 0) return
    unmade.sort((a, b) => Number(b.size > 0) - Number(a.size > 0))
    for (const stream of unmade.slice(0, RENEWED_AT_A_TIME - this.#renewing.size)) {
      this.#renewing.set(stream, performance.now())
      this.#subscribe(stream)
    }
  }

  #lose(): void {
    for (const stream of this.streams) stream.lost()
  }
}

/** A stream that no browser wants any more. Its messages are ignored until upstream has forgotten it. */
class UnwantedStream implements Listener {
  readonly #owner: StreamLink
  readonly #id: string
  #isRefused = false

  constructor(owner: StreamLink, id: string) {
    this.#owner = owner
    this.#id = id
  }

  received(): void {
    // Upstream has sent it before the request to forget it arrived.
  }

  /** Upstream counts requests by the minute, so a `forget` that it has refused is sent again after a moment. */
  beat(reqId: number): void {
    if (!this.#isRefused) return
    this.#isRefused = false
    if (this.#owner.has(this.#id)) this.#owner.connection.release(reqId)
    else this.forget(reqId)
  }

  /** @param reqId that of its messages */
  forget(reqId: number): void {
    const { connection } = this.#owner
    const askedAt = performance.now()
    connection.send((id) => `{"forget":${JSON.stringify(this.#id)},"req_id":${id}}`, {
      isAnsweredOnce: true,
      received: ({ errorCode }) => {
        if (errorCode === 'RateLimit') this.#isRefused = true
        else connection.release(reqId)
      },
      // If upstream still sends the stream, it is told again to forget it.
      beat: (id) => {
        if (performance.now() - askedAt < ANSWER_MS) return
        connection.release(id)
        connection.release(reqId)
      },
    })
  }
}
