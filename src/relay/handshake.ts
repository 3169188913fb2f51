import type { FastifyRequest } from 'fastify'
import type { WebSocket } from 'ws'
import { StoreUnavailable } from '../store/store.ts'
import type { Caps, Leave } from './caps.ts'
import { codeLabel, ENDINGS, type Ending } from './close-codes.ts'
import type { Registered, RelayRegistry } from './registry.ts'
import type { RelayParts } from './relay-parts.ts'
import { closeSocket, Relay } from './relay.ts'
import type { Access, TradingAccess } from './trading-access.ts'
import { openUpstreamSocket } from './upstream-socket.ts'

/** What a handshake works with, beside the request. */
export type HandshakeParts = RelayParts & {
  readonly caps: Caps
  readonly access: TradingAccess
  readonly registry: RelayRegistry
}

/** What a relay is seen as in the metrics. */
type RelayKind = 'public' | 'demo' | 'real' | 'trading'

/**
 * One browser socket, on its way to a relay and then as one. Before the 101 everything is tried: place, session, OTP,
 * upstream; the outcome is then either joined or told by a close frame. Whoever leaves in the middle leaves nothing.
 */
export class Handshake implements Registered {
  readonly #parts: HandshakeParts
  readonly #request: FastifyRequest
  /** Aborted when it is over before it was joined: refused, or the browser left. */
  readonly #over = new AbortController()
  /** What is given back when it is over: places, the watch on the session, listeners. */
  readonly #holds: (() => void)[] = []
  #refusal: Ending | undefined
  #upstream: WebSocket | undefined
  #kind: RelayKind = 'public'
  #relay: Relay | undefined

  constructor(request: FastifyRequest, parts: HandshakeParts) {
    this.#request = request
    this.#parts = parts
    const { socket } = request.raw
    const leave = (): void => this.#leave()
    // The HTTP server keeps sockets half open: a browser that closes its end is heard by `end` alone.
    socket.once('end', leave).once('close', leave)
    this.#hold(() => socket.off('end', leave).off('close', leave))
    this.#hold(parts.registry.add(this))
    if (socket.destroyed || socket.readableEnded) this.#leave()
    else if (parts.registry.isClosing) this.#refuse(ENDINGS.restarting)
  }

  /** What waits in this process for its peers. */
  get bufferedBytes(): number {
    return this.#relay?.bufferedBytes ?? 0
  }

  /** Opens the public market data socket. Never rejects: what went wrong is told by {@link join}. */
  openPublic(): Promise<void> {
    return this.#settle(this.#openPublic())
  }

  /** Opens the trading socket of an account, for the session of the request. Never rejects. */
  openTrading(accountId: string): Promise<void> {
    this.#kind = 'trading'
    return this.#settle(this.#openTrading(accountId))
  }

  /** Ends the relay, or the attempt. */
  end(ending: Ending): void {
    if (this.#relay === undefined) this.#refuse(ending)
    else this.#relay.end(ending)
  }

  /** Joins the browser's socket to upstream's, or tells it why not. */
  join(browser: WebSocket): void {
    const { config: limits, metrics } = this.#parts
    const upstream = this.#upstream
    if (this.#isOver || upstream === undefined) return this.#tellRefusal(browser)
    const kind = this.#kind
    const openedAt = performance.now()
    metrics.relays.inc({ kind })
    this.#relay = new Relay(
      { browser, upstream },
      {
        limits,
        metrics,
        onEnd: (ending, violation) => {
          metrics.relays.dec({ kind })
          this.#ended(ending, performance.now() - openedAt, violation)
        },
      },
    )
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
      this.#refuse(isOutage ? ENDINGS.storeDown : ENDINGS.ourFault)
    }
    await Promise.race([attempt.catch(failed), over])
  }

  async #openPublic(): Promise<void> {
    const { caps, config } = this.#parts
    if (this.#isOver || !this.#enter(caps.enterProcess())) return
    if (!this.#enter(caps.enterAddress(this.#request.ip))) return
    await this.#open(`${config.wsUrl}/trading/v1/options/ws/public`)
  }

  async #openTrading(accountId: string): Promise<void> {
    const { caps, endings, access } = this.#parts
    if (this.#isOver || !this.#enter(caps.enterProcess())) return
    const session = this.#granted(await access.session(this.#request.headers.cookie))
    if (session === undefined || !this.#enter(caps.enterSession(session.key))) return
    this.#request.sessionTag = session.tag
    // From here on the end of the session ends the attempt, and later the relay.
    this.#hold(
      endings.watch(session, (reason) =>
        this.end(reason === 'storeLost' ? ENDINGS.storeDown : ENDINGS.sessionExpired),
      ),
    )
    const wanted = { id: this.#request.id, signal: this.#over.signal }
    const url = this.#granted(await access.url(accountId, session, wanted))
    if (url === undefined) return
    this.#kind = kindOf(url)
    await this.#open(url)
    if (this.#isOver) return
    // Asked at the very last: word of an ending may still be on its way here.
    const ending = await access.ended(session)
    if (ending !== undefined) this.#refuse(ending)
  }

  async #open(url: URL | string): Promise<void> {
    const { maxUpstreamMessageBytes } = this.#parts.config
    const outcome = await openUpstreamSocket(url, maxUpstreamMessageBytes, this.#over.signal)
    if (outcome.is === 'open') {
      if (this.#isOver) return outcome.socket.terminate()
      this.#upstream = outcome.socket
    } else if (!this.#isOver) {
      this.#request.log.warn({ why: outcome.why, kind: this.#kind }, 'upstream refused a socket')
      this.#refuse(outcome.ending)
    }
  }

  get #isOver(): boolean {
    return this.#over.signal.aborted
  }

  /** What was granted, if anybody still wants it. */
  #granted<Granted>(access: Access<Granted>): Granted | undefined {
    if (this.#isOver) return undefined
    if (access.is === 'granted') return access.value
    const { ending, why } = access
    if (why !== undefined) this.#request.log.warn({ why, code: ending.code }, 'no one-time URL for a relay')
    return this.#refuse(ending)
  }

  #enter(leave: Leave | undefined): boolean {
    if (leave === undefined) this.#refuse(ENDINGS.tooManyRelays)
    else this.#hold(leave)
    return leave !== undefined
  }

  /** Something to give back when it is over, at once if it is over already. */
  #hold(giveBack: () => void): void {
    if (this.#isOver) giveBack()
    else this.#holds.push(giveBack)
  }

  #refuse(ending: Ending): undefined {
    if (this.#isOver) return
    this.#refusal = ending
    this.#giveUp(ending.reason)
  }

  /** The browser left before it was joined. */
  #leave(): void {
    if (this.#isOver || this.#relay !== undefined) return
    this.#giveUp('browser_left')
    this.#request.raw.socket.destroy()
  }

  #giveUp(reason: string): void {
    this.#parts.metrics.relayRefusals.inc({ reason })
    this.#over.abort()
    this.#upstream?.terminate()
    this.#giveBack()
  }

  #giveBack(): void {
    for (const giveBack of this.#holds.splice(0)) giveBack()
  }

  #tellRefusal(browser: WebSocket): void {
    const ending = this.#refusal ?? ENDINGS.ourFault
    this.#parts.metrics.relayEndings.inc({ code: codeLabel(ending) })
    const { code, reason } = ending
    this.#request.log.info(
      { kind: this.#kind, code, reason, session: this.#request.sessionTag },
      'relay refused',
    )
    closeSocket(browser, ending)
  }

  #ended(ending: Ending | undefined, openMs: number, violation: string | undefined): void {
    this.#giveBack()
    this.#parts.metrics.relayEndings.inc({ code: codeLabel(ending) })
    const kind = this.#kind
    const session = this.#request.sessionTag
    if (violation !== undefined) {
      this.#request.log.warn({ kind, session, why: violation }, 'upstream broke the WebSocket protocol')
    }
    const details = {
      audit: 'relay_ended',
      kind,
      session,
      code: ending?.code,
      seconds: Math.round(openMs / 1000),
    }
    this.#request.log.info(details, 'relay ended')
  }
}

/** Demo or real, where the one-time URL tells. */
function kindOf(url: URL): RelayKind {
  const last = url.pathname.split('/').at(-1)
  return last === 'demo' || last === 'real' ? last : 'trading'
}
