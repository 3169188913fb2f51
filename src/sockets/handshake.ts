import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { WebSocket } from 'ws'
import type { Session } from '../sessions/index.ts'
import { StoreUnavailable } from '../store/store.ts'
import { activeSpan, untraced } from '../telemetry/traces/span.ts'
import type { Release } from '../limits/permits.ts'
import { after, attributesOf, CLOSE, closeOf, closeSocket, type CloseStatus } from './close-codes.ts'
import { readInTurns } from './receiver.ts'
import type { OpenSocket } from './socket-end.ts'
import type { SocketDependencies } from './prepare-sockets.ts'
import { SocketSlot, type SocketKind } from './registry.ts'

declare module 'fastify' {
  interface FastifyRequest {
    handshake: Handshake | null
  }
}

/** A thing that a handshake has opened for its browser: it takes over the browser's socket, or is dropped. */
export interface Opened {
  /** @param open what the log says of the browser's socket, and how to end it */
  join(browser: OpenSocket, slot: SocketSlot, open: ReturnType<SocketSlot['opened']>): void
  drop?(): void
}

/**
 * A browser's socket before it is open. Everything that can fail is tried before the 101: permits, session, one-time URL,
 * upstream. Then the socket is either joined or closed with the reason. A browser that leaves meanwhile leaves nothing behind.
 */
export class Handshake {
  /** The kind of a trading socket, demo or real, is known once it has its one-time URL. */
  kind: SocketKind
  /** Adds to the close of a refusal when the page may come back. */
  withReturn: ((close: CloseStatus) => CloseStatus) | undefined
  readonly request: FastifyRequest
  readonly waitingBytes = 0
  readonly #deps: SocketDependencies
  readonly #reply: FastifyReply
  readonly #slot: SocketSlot
  readonly #span = activeSpan()
  /** Aborted when the handshake is over without a join: it was refused, or the browser left. */
  readonly #over = new AbortController()
  readonly #onBrowserLeft = (): void => this.#browserLeft()
  #refusal: CloseStatus | undefined
  #opened: Opened | undefined

  constructor(request: FastifyRequest, reply: FastifyReply, deps: SocketDependencies, kind: SocketKind) {
    this.kind = kind
    this.request = request
    this.#reply = reply
    this.#deps = deps
    this.#slot = new SocketSlot(deps, this)
    const { socket } = request.raw
    // The HTTP server keeps half-open sockets, so only `end` tells that a browser has closed its half.
    socket.once('end', this.#onBrowserLeft).once('close', this.#onBrowserLeft)
    if (socket.destroyed || socket.readableEnded) this.#browserLeft()
    else if (deps.registry.isClosing) this.end(CLOSE.restarting)
  }

  /** Aborted when the outcome is no longer needed. */
  get signal(): AbortSignal {
    return this.#over.signal
  }

  get isOver(): boolean {
    return this.#over.signal.aborted
  }

  /** Runs an attempt to open something. Resolves when its outcome is known or no longer needed. Never rejects. */
  async run(attempt: () => Promise<Opened | undefined>): Promise<void> {
    if (this.isOver) return
    const over = new Promise<void>((resolve) => this.signal.addEventListener('abort', () => resolve(), { once: true }))
    const failed = (error: unknown): undefined => {
      if (error instanceof StoreUnavailable) return this.end(CLOSE.storeDown)
      this.request.log.error({ err: error }, 'a relay could not be opened')
      return this.end(CLOSE.ourFault)
    }
    const settled = attempt().then((opened) => {
      if (this.isOver) opened?.drop?.()
      else this.#opened = opened
    }, failed)
    await Promise.race([settled, over])
  }

  /** Keeps a permit until the socket closes. Without one the handshake ends, and this returns false. */
  acquire(permit: Release | undefined): boolean {
    if (permit === undefined) this.end(CLOSE.tooManyRelays)
    else this.#onRelease(permit)
    return !this.isOver
  }

  /** Takes what a socket that needs no login costs: a handshake of its address, and permits of this process. False once it is over. */
  acquireUnreserved(): boolean {
    const { caps } = this.#deps
    if (!caps.allowsHandshake(this.request.ip)) this.end(after(CLOSE.rateLimited, 1000 * caps.handshakeSecondsLeft))
    return !this.isOver && this.acquire(caps.acquireProcess()) && this.acquire(caps.acquireUnreserved())
  }

  /** Takes the permits of a public socket. False once the handshake is over. */
  acquirePublic(): boolean {
    return this.acquireUnreserved() && this.acquire(this.#deps.caps.acquireAddress(this.request.ip))
  }

  /** The session of the browser, with a token that is good for use. Undefined once the handshake is over. */
  async authorize(): Promise<Session | undefined> {
    const found = await this.#deps.sessions.authorize(this.request.headers.cookie, 'valid', this.request)
    if (this.isOver) return undefined
    return found.is === 'authorized' ? found.session : this.end(closeOf(found))
  }

  /** From now on the end of the session, on whatever instance, ends this handshake and later the open socket. */
  endWith(session: Session): void {
    this.request.sessionTag = session.tag
    this.request.subjectTag = session.subjectTag
    const slot = this.#slot
    const stop = this.#deps.sessions.watch(session, {
      // Unless RELAYS_KEEP_SESSION is off, an open socket counts as use of its session.
      isUse: true,
      client: { ip: this.request.ip },
      onEnd: (reason) => slot.end(reason === 'storeLost' ? CLOSE.storeDown : CLOSE.sessionExpired),
    })
    this.#onRelease(stop)
  }

  /**
   * The session as the store has it, since the notification of its end may still be on the way to this instance. Undefined
   * once the handshake is over.
   */
  async current(session: Session): Promise<Session | undefined> {
    const found = await this.#deps.sessions.reread(session)
    if (found.is !== 'live') return this.end(found.is === 'none' ? CLOSE.sessionExpired : CLOSE.storeDown)
    return this.isOver ? undefined : found.session
  }

  /** Ends the handshake. The browser still gets its 101, and then this close frame: pages cannot read an HTTP refusal. */
  end(close: CloseStatus): undefined {
    if (this.isOver) return
    this.#refusal = this.withReturn?.(close) ?? close
    this.#giveUp(close.reason)
  }

  /** Joins the browser's socket to what was opened, or closes it with the reason of the refusal. */
  join(browser: WebSocket): void {
    const opened = this.#opened
    if (this.isOver || opened === undefined) {
      const close = this.#refusal ?? CLOSE.ourFault
      this.#slot.refused(this.request, this.kind, close)
      this.#span.event({ name: 'socket refused', attributes: attributesOf(close) })
      this.#span.end({ status: 101 })
      readInTurns(browser)
      return closeSocket(browser, close)
    }
    const { socket: wire } = this.request.raw
    // Without these two lines the request and its response would live as long as the socket.
    browser.removeAllListeners('error')
    this.#reply.raw.detachSocket(wire)
    const open = this.#slot.opened(this.request, this.#reply, this.kind, this.#span)
    this.#span.end({ status: 101 })
    // Otherwise the timers of the open socket would keep the span.
    untraced(() => opened.join({ socket: browser, wire }, this.#slot, open))
    // Had any of this failed, the end of the connection would release what the handshake holds.
    this.#stopListening()
  }

  #onRelease(release: () => void): void {
    if (this.isOver) release()
    else this.#slot.onRelease(release)
  }

  #browserLeft(): void {
    if (this.isOver) return
    this.#giveUp('browser_left')
    this.request.raw.socket.destroy()
  }

  #giveUp(reason: string): void {
    this.#deps.metrics.relayRefusals.inc({ reason })
    this.#over.abort()
    this.#opened?.drop?.()
    this.#stopListening()
    this.#slot.release()
  }

  #stopListening(): void {
    this.request.raw.socket.off('end', this.#onBrowserLeft).off('close', this.#onBrowserLeft)
  }
}

interface SocketRoute {
  readonly kind: SocketKind
  /** @throws Problem for a request that gets an HTTP response instead of a socket */
  readonly check?: (request: FastifyRequest) => void
  /** Opens what the socket needs. Resolves with nothing once the handshake is over. */
  readonly open: (handshake: Handshake) => Promise<Opened | undefined>
}

/** Adds a `GET` route of a socket. Its handshake runs before the 101, which every browser gets unless it is refused with a problem. */
export function socketRoute(
  fastify: FastifyInstance,
  path: string,
  deps: SocketDependencies,
  { kind, check, open }: SocketRoute,
): void {
  const preHandler = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    check?.(request)
    const handshake = new Handshake(request, reply, deps, kind)
    request.handshake = handshake
    await handshake.run(() => open(handshake))
  }
  fastify.get(path, { websocket: true, preHandler }, (socket, request) => request.handshake?.join(socket))
}
