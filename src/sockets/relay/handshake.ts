import type { FastifyReply, FastifyRequest } from 'fastify'
import type { WebSocket } from 'ws'
import { logFailure } from '../../telemetry/failure-log.ts'
import type { Session, Sessions } from '../../sessions/index.ts'
import { StoreUnavailable } from '../../store/store.ts'
import type { Caps, Release } from '../caps.ts'
import { codeLabel, CLOSE, type CloseStatus } from '../close-codes.ts'
import { JoinedRelay, type RelayIdentity, type RelayKind } from './joined-relay.ts'
import type { Registered, RelayRegistry } from '../registry.ts'
import type { RelayDependencies } from './relay-dependencies.ts'
import { RelaySlot } from './relay-slot.ts'
import { closeSocket } from './relay.ts'
import type { PeerConnection } from '../peer.ts'
import type { Access, TradingAccess } from './trading-access.ts'
import { openUpstreamSocket, PUBLIC_SOCKET_PATH } from './upstream-socket.ts'

/** What a handshake works with, beside the request. */
export type HandshakeDependencies = RelayDependencies & {
  readonly caps: Caps
  readonly access: TradingAccess
  readonly registry: RelayRegistry
}

/**
 * One browser socket, on its way to a relay. Before the 101 everything is tried: place, session, OTP, upstream; the
 * outcome is then either joined or requestLog by a close frame. Whoever leaves in the middle leaves nothing.
 */
export class Handshake implements Registered {
  readonly #deps: HandshakeDependencies
  readonly #request: FastifyRequest
  readonly #reply: FastifyReply
  /** Aborted when it is over before it was joined: refused, or the browser left. */
  readonly #over = new AbortController()
  readonly #slot: RelaySlot
  readonly #onBrowserLeft = (): void => this.#browserLeft()
  #refusal: CloseStatus | undefined
  #upstream: PeerConnection | undefined
  #kind: RelayKind = 'public'
  /** What the log calls the account. */
  #account: { readonly account?: string } = {}

  constructor(request: FastifyRequest, reply: FastifyReply, deps: HandshakeDependencies) {
    this.#request = request
    this.#reply = reply
    this.#deps = deps
    this.#slot = new RelaySlot(deps.registry, this)
    const { socket } = request.raw
    // The HTTP server keeps sockets half open: a browser that closes its end is heard by `end` alone.
    socket.once('end', this.#onBrowserLeft).once('close', this.#onBrowserLeft)
    if (socket.destroyed || socket.readableEnded) this.#browserLeft()
    else if (deps.registry.isClosing) this.#refuse(CLOSE.restarting)
  }

  /** Nothing passes yet. */
  get bufferedBytes(): number {
    return 0
  }

  /** Opens the public market data socket. Never rejects: what went wrong is requestLog by {@link join}. */
  openPublic(): Promise<void> {
    return this.#settle(this.#openPublic())
  }

  /** Opens the trading socket of an account, for the session of the request. Never rejects. */
  openTrading(accountId: string): Promise<void> {
    this.#kind = 'trading'
    this.#account = { account: this.#deps.accountTag(accountId) }
    return this.#settle(this.#openTrading(accountId))
  }

  /** Ends the attempt. */
  end(close: CloseStatus): void {
    this.#refuse(close)
  }

  /** Joins the browser's socket to upstream's, or tells it why not. */
  join(browser: WebSocket): void {
    const upstream = this.#upstream
    if (this.#isOver || upstream === undefined) return this.#sendRefusal(browser)
    const { raw, id: reqId, ip: client, sessionTag: session } = this.#request
    const { socket: wire } = raw
    this.#stopListening()
    // As long as these point to them, request and answer would live as long as the relay.
    browser.removeAllListeners('error')
    this.#reply.raw.detachSocket(wire)
    const identity = { kind: this.#kind, reqId, session, ...this.#account, client }
    this.#noteOpening(identity)
    void new JoinedRelay({ browser: { socket: browser, wire }, upstream }, identity, this.#slot, this.#deps)
  }

  /** Its answer is never finished, so that the usual connection of a request does not come. */
  #noteOpening(identity: RelayIdentity): void {
    const { metrics, log } = this.#deps
    const { elapsedTime } = this.#reply
    const route = this.#request.routeOptions.url ?? ''
    metrics.requests.add(route, { method: 'GET', status: 101 }, elapsedTime / 1000)
    log.info({ ...identity, ms: Math.round(elapsedTime * 10) / 10 }, 'relay opened')
  }

  /** Waits for an attempt, but no longer than anybody is interested in it. */
  async #settle(attempt: Promise<void>): Promise<void> {
    const { signal } = this.#over
    const over = new Promise<void>((resolve) => {
      if (signal.aborted) resolve()
      else signal.addEventListener('abort', () => resolve(), { once: true })
    })
    const failed = (error: unknown): void => {
      const isOutage = error instanceof StoreUnavailable
      if (!isOutage) this.#request.log.error({ err: error }, 'a relay could not be opened')
      this.#refuse(isOutage ? CLOSE.storeDown : CLOSE.ourFault)
    }
    await Promise.race([attempt.catch(failed), over])
  }

  async #openPublic(): Promise<void> {
    const { caps, config } = this.#deps
    const { ip } = this.#request
    if (!caps.allowsPublicHandshake(ip)) return this.#refuse(CLOSE.rateLimited)
    if (this.#isOver || !this.#acquire(caps.acquireProcess()) || !this.#acquire(caps.acquireUnreserved()))
      return
    if (!this.#acquire(caps.acquireAddress(ip))) return
    await this.#open(config.wsUrl + PUBLIC_SOCKET_PATH)
  }

  async #openTrading(accountId: string): Promise<void> {
    const { caps, sessions, access } = this.#deps
    if (this.#isOver || !this.#acquire(caps.acquireProcess())) return
    const session = this.#granted(await access.session(this.#request.headers.cookie))
    if (session === undefined || !this.#acquire(caps.acquireSession(session.key))) return
    this.#request.sessionTag = session.tag
    // From here on the end of the session ends the attempt, and later the relay.
    this.#onRelease(endWith(session, this.#slot, sessions))
    const { id, ip: client } = this.#request
    const wanted = { id, client, signal: this.#over.signal }
    const url = this.#granted(await access.url(accountId, session, wanted))
    if (url === undefined) return
    this.#kind = kindOf(url)
    await this.#open(url)
    if (this.#isOver) return
    // Asked at the very last: word of an close may still be on its way here.
    const close = await access.ended(session)
    if (close !== undefined) this.#refuse(close)
  }

  async #open(url: URL | string): Promise<void> {
    const { maxUpstreamMessageBytes } = this.#deps.config
    const outcome = await openUpstreamSocket(url, maxUpstreamMessageBytes, this.#over.signal)
    if (outcome.is === 'open') {
      if (this.#isOver) return outcome.connection.socket.terminate()
      this.#upstream = outcome.connection
    } else if (!this.#isOver) {
      const { why, cause } = outcome
      logFailure(this.#request.log, 'upstream refused a socket', { why, kind: this.#kind }, cause)
      this.#refuse(outcome.close)
    }
  }

  get #isOver(): boolean {
    return this.#over.signal.aborted
  }

  /** What was granted, if anybody still wants it. */
  #granted<Granted>(access: Access<Granted>): Granted | undefined {
    if (this.#isOver) return undefined
    if (access.is === 'granted') return access.value
    const { close, why, cause } = access
    if (why !== undefined) {
      logFailure(this.#request.log, 'no one-time URL for a relay', { why, code: close.code }, cause)
    }
    return this.#refuse(close)
  }

  #acquire(leave: Release | undefined): boolean {
    if (leave === undefined) this.#refuse(CLOSE.tooManyRelays)
    else this.#onRelease(leave)
    return leave !== undefined
  }

  /** Something to give back when it is over, at once if it is over already. */
  #onRelease(release: () => void): void {
    if (this.#isOver) release()
    else this.#slot.onRelease(release)
  }

  #refuse(close: CloseStatus): undefined {
    if (this.#isOver) return
    this.#refusal = close
    this.#giveUp(close.reason)
  }

  /** The browser left before it was joined. */
  #browserLeft(): void {
    if (this.#isOver) return
    this.#giveUp('browser_left')
    this.#request.raw.socket.destroy()
  }

  #giveUp(reason: string): void {
    this.#deps.metrics.relayRefusals.inc({ reason })
    this.#over.abort()
    this.#upstream?.socket.terminate()
    this.#stopListening()
    this.#slot.release()
  }

  #stopListening(): void {
    this.#request.raw.socket.off('end', this.#onBrowserLeft).off('close', this.#onBrowserLeft)
  }

  #sendRefusal(browser: WebSocket): void {
    const close = this.#refusal ?? CLOSE.ourFault
    this.#deps.metrics.relayCloses.inc({ code: codeLabel(close) })
    const { code, reason } = close
    const { log, ip: client, sessionTag: session } = this.#request
    log.info({ kind: this.#kind, code, reason, session, ...this.#account, client }, 'relay refused')
    closeSocket(browser, close)
  }
}

/** Has the end of a session end what it holds open. */
function endWith(session: Session, slot: RelaySlot, sessions: Sessions): () => void {
  return sessions.watch(session, (reason) =>
    slot.end(reason === 'storeLost' ? CLOSE.storeDown : CLOSE.sessionExpired),
  )
}

/** Demo or real, where the one-time URL tells. */
function kindOf(url: URL): RelayKind {
  const last = url.pathname.split('/').at(-1)
  return last === 'demo' || last === 'real' ? last : 'trading'
}
