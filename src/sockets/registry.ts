import type { Socket } from 'node:net'
import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from 'fastify'
import { callerOnAccount, sourceOf } from '../http/requester.ts'
import { audit, auditBounded } from '../telemetry/audit/audit.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { activeSpan, type Span } from '../telemetry/traces/span.ts'
import { within } from '../time/within.ts'
import { attributesOf, CLOSE, codeLabel, WITHOUT_CODE, type CloseStatus } from './close-codes.ts'
import { losers } from './losers.ts'
import { WaitingBytes } from './waiting-bytes.ts'

/** Few sockets close at once; many are spread, so that their browsers do not all reconnect in one moment. */
const MS_PER_SOCKET = 2

/** The kind of a socket, as metrics and logs name it. */
export type SocketKind = 'public' | 'demo' | 'real' | 'trading' | 'session'

/** The same with one kind for all accounts. */
type CountedKind = 'public' | 'session' | 'trading'

/** A browser's socket in its handshake, or open. */
interface Owner {
  /** Bytes that wait in this process for its peers. */
  readonly waitingBytes: number
  end(close: CloseStatus): void
}

/** The browser sockets of this process. */
export class SocketRegistry {
  /** Bounds what waits for all of them. */
  readonly waiting: WaitingBytes
  readonly #sockets = new Set<SocketSlot>()
  /** Connections to upstream whose relays are over, and that may not have read all: how each is cut off. */
  readonly #rests = new Map<Socket, () => void>()
  readonly #metrics: Pick<Metrics, 'closedForMemory'>
  #isClosing = false
  #emptied: (() => void) | undefined

  /** @param maxWaitingBytes MAX_WAITING_BYTES */
  constructor(maxWaitingBytes: number, metrics: Pick<Metrics, 'closedForMemory'>) {
    this.#metrics = metrics
    this.waiting = new WaitingBytes(maxWaitingBytes, () => this.#relieve(maxWaitingBytes))
  }

  /** True once the server drains: no socket may open any more. */
  get isClosing(): boolean {
    return this.#isClosing
  }

  /** Bytes that wait in this process for the peers of all sockets. */
  get waitingBytes(): number {
    return this.#openBytes + this.waiting.closingBytes
  }

  get #openBytes(): number {
    let bytes = 0
    for (const socket of this.#sockets) bytes += socket.waitingBytes
    return bytes
  }

  /** Adds a socket. Returns how to remove it; removing it twice is harmless. */
  add(socket: SocketSlot): () => void {
    this.#sockets.add(socket)
    return () => {
      if (this.#sockets.delete(socket) && this.#sockets.size === 0) this.#emptied?.()
    }
  }

  /**
   * Closes all sockets with 1012, spread over `maxMs` at most. Resolves when all are gone.
   * @param returnMs resolves with the time after which the last page may come back: a socket is of use until then
   */
  async closeAll(maxMs: number, returnMs: Promise<number> | undefined): Promise<void> {
    this.#isClosing = true
    const wantedMs = Math.max((await returnMs) ?? 0, this.#sockets.size * MS_PER_SOCKET)
    if (this.#sockets.size === 0) return
    const spreadMs = Math.min(maxMs, wantedMs)
    const emptied = new Promise<void>((resolve) => (this.#emptied = resolve))
    for (const socket of this.#sockets) {
      setTimeout(() => socket.end(CLOSE.restarting), Math.random() * spreadMs)
    }
    await emptied
  }

  /** Notes a connection that is to read the rest of what was sent to it. */
  rest(wire: Socket, cut: () => void): void {
    this.#rests.set(wire, cut)
    wire.once('close', () => this.#rests.delete(wire))
  }

  /** Waits for the rests, and cuts off what is left: the kernel would go on sending orders when this process is gone. */
  async endRests(maxMs: number): Promise<void> {
    await within(maxMs, Promise.all([...this.#rests.keys()].map(closed)))
    for (const cut of this.#rests.values()) cut()
  }

  /** Closes sockets until the others hold less than this, if some may lose. Returns what these then hold. */
  #relieve(maxBytes: number): number {
    const bytes = this.#openBytes
    if (bytes < maxBytes) return bytes
    const open = [...this.#sockets].flatMap((socket) => socket.open ?? [])
    for (const { kind, socket } of losers(open, bytes - maxBytes + 1)) {
      this.#metrics.closedForMemory.inc({ kind })
      socket.end(CLOSE.slowConsumer)
    }
    return this.#openBytes
  }
}

interface SlotDependencies {
  readonly registry: SocketRegistry
  readonly metrics: Metrics
  readonly log: FastifyBaseLogger
}

/**
 * The place of one browser's socket in this process, from the start of its handshake until it closes: its permits, the watch on its
 * session, and its place among the open sockets. The slot counts and logs the socket. It is separate from the handshake, so that
 * an open socket keeps nothing of that alive.
 */
export class SocketSlot {
  /** The handshake first, the open socket later. */
  owner: Owner
  readonly #deps: SlotDependencies
  readonly #releases: (() => void)[] = []
  #kind: CountedKind | undefined
  #holder = ''

  constructor(deps: SlotDependencies, owner: Owner) {
    this.#deps = deps
    this.owner = owner
    this.onRelease(deps.registry.add(this))
  }

  get waitingBytes(): number {
    return this.owner.waitingBytes
  }

  /** How its waiting bytes are judged once it is open: see {@link losers}. */
  get open() {
    const [kind, holder] = [this.#kind, this.#holder]
    return kind && { kind, holder, waitingBytes: this.waitingBytes, socket: this }
  }

  end(close: CloseStatus): void {
    this.owner.end(close)
  }

  /** Has `release` called when the socket is over. */
  onRelease(release: () => void): void {
    this.#releases.push(release)
  }

  /** Releases everything, once. */
  release(): void {
    for (const release of this.#releases.splice(0)) release()
  }
  /**
   * Counts and logs a socket that opens. Its response never finishes, so the usual request line is never written.
   * @returns what the log says of it, and how to end it, once: it is released, and its end counted and logged
   */
  opened(request: FastifyRequest, { elapsedTime }: FastifyReply, kind: SocketKind, span: Span) {
    const { metrics, log } = this.#deps
    const openedAt = performance.now()
    const identity = { kind, reqId: request.id, ...callerOnAccount(request), ...activeSpan().ids }
    this.#kind = countedKind(kind)
    this.#holder = request.subjectTag ?? sourceOf(request)
    metrics.requests.add(request.routeOptions.url ?? '', { method: 'GET', status: 101 }, elapsedTime / 1000)
    metrics.relays.inc({ kind })
    this.onRelease(() => metrics.relays.dec({ kind }))
    audit(log, 'relay_opened', { ...identity, ms: Math.round(elapsedTime * 10) / 10 })
    const measured = span.measure(`socket ${kind}`)
    const ended = (close: CloseStatus): void => {
      this.release()
      this.#countEnd(kind, close)
      measured({ name: 'socket closed', attributes: attributesOf(close) })
      const seconds = Math.round((performance.now() - openedAt) / 1000)
      audit(log, 'relay_ended', { ...identity, code: close === WITHOUT_CODE ? undefined : close.code, seconds })
    }
    return { identity, ended }
  }

  /** Counts and logs a handshake that ends with a close frame. */
  refused(request: FastifyRequest, kind: SocketKind, close: CloseStatus): void {
    this.#countEnd(kind, close)
    const { code, reason } = close
    const fields = { kind, code, reason, ...callerOnAccount(request) }
    auditBounded(request.log, 'relay_refused', fields, `${reason}|${sourceOf(request)}`)
  }

  #countEnd(kind: SocketKind, close: CloseStatus): void {
    this.#deps.metrics.relayCloses.inc({ kind: countedKind(kind), code: codeLabel(close) })
  }
}

function closed(wire: Socket): Promise<unknown> {
  return new Promise((resolve) => wire.once('close', resolve))
}

/** A refusal may come before it is known which kind an account is of, so the kinds of trading sockets count as one. */
function countedKind(kind: SocketKind): CountedKind {
  return kind === 'demo' || kind === 'real' ? 'trading' : kind
}
