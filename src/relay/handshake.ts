import type { FastifyRequest } from 'fastify'
import type { WebSocket } from 'ws'
import { StoreUnavailable } from '../store/store.ts'
import type { Session } from '../session/sessions.ts'
import type { Caps } from './caps.ts'
import { ENDINGS, type Ending } from './close-codes.ts'
import type { OtpClient } from './otp.ts'
import type { RelayRegistry } from './registry.ts'
import type { RelayParts } from './relay-parts.ts'
import { Relay, type RelayKind } from './relay.ts'
import { openUpstreamSocket } from './upstream-socket.ts'

/** What a handshake works with, beside the request. */
type HandshakeParts = RelayParts & { readonly caps: Caps; readonly otp: OtpClient }

/** What to tell the browser when its session is no longer there. */
function endingOfWatch(reason: string): Ending {
  return reason === 'storeLost' ? ENDINGS.storeDown : ENDINGS.sessionExpired
}

/**
 * One browser socket on its way to a relay. Before the 101 everything is tried: place, session, OTP, upstream; the
 * outcome is then either joined or told by a close frame. Whoever leaves in the middle leaves nothing behind.
 */
export class Handshake {
  readonly #parts: HandshakeParts
  readonly #request: FastifyRequest
  readonly #aborted = new AbortController()
  /** Undone in any case when the relay, or the attempt, is over. */
  readonly #cleanups: (() => void)[] = []
  #ending: Ending | undefined
  #upstream: WebSocket | undefined
  #kind: RelayKind = 'public'
  #relay: Relay | undefined

  constructor(request: FastifyRequest, parts: HandshakeParts) {
    this.#request = request
    this.#parts = parts
    const { socket } = request.raw
    const onClose = (): void => this.#abandon()
    socket.once('close', onClose)
    this.#cleanups.push(() => socket.off('close', onClose))
    if (socket.destroyed) this.#abandon()
  }

  /** Opens the public market data socket. Never rejects: what went wrong is told by {@link join}. */
  async openPublic(): Promise<void> {
    await this.#guarded(() => this.#openPublic())
  }

  /** Opens the trading socket of an account, for the session of the request. Never rejects. */
  async openTrading(accountId: string): Promise<void> {
    this.#kind = 'trading'
    await this.#guarded(() => this.#openTrading(accountId))
  }

  async #guarded(open: () => Promise<void>): Promise<void> {
    try {
      await open()
    } catch (error) {
      const isOutage = error instanceof StoreUnavailable
      if (!isOutage) this.#request.log.error({ err: error }, 'a relay could not be opened')
      this.#refuse(isOutage ? ENDINGS.storeDown : ENDINGS.ourFault)
    }
  }

  async #openPublic(): Promise<void> {
    if (!this.#enter(this.#parts.caps.enterAddress(this.#request.ip))) return
    await this.#open(`${this.#parts.config.wsUrl}/trading/v1/options/ws/public`)
  }

  async #openTrading(accountId: string): Promise<void> {
    const session = await this.#session()
    if (session === undefined || !this.#enter(this.#parts.caps.enterSession(session.key))) return
    this.#request.sessionTag = session.tag
    // From here on the end of the session ends the attempt, and later the relay.
    this.#cleanups.push(this.#parts.endings.watch(session, (reason) => this.#refuse(endingOfWatch(reason))))
    const url = await this.#otpUrl(accountId, session)
    if (url === undefined || this.#isOver) return
    this.#kind = kindOf(url)
    await this.#open(url)
  }

  /** Joins the browser's socket to upstream's. Returns the close frame to send instead, when it was refused. */
  join(browser: WebSocket, registry: RelayRegistry): Ending | undefined {
    const upstream = this.#upstream
    if (registry.isClosing) this.#refuse(ENDINGS.restarting)
    if (upstream === undefined || this.#ending !== undefined) {
      const ending = this.#ending ?? ENDINGS.ourFault
      this.#parts.metrics.relayEndings.inc({ code: String(ending.code) })
      this.#cleanUp()
      return ending
    }
    const { config: limits, metrics } = this.#parts
    const onEnd = (ending: Ending | undefined): void => {
      registry.remove(relay)
      metrics.relayEndings.inc({ code: codeLabel(ending) })
      const details = {
        audit: 'relay_ended',
        kind: this.#kind,
        code: ending?.code,
        session: this.#request.sessionTag,
      }
      this.#request.log.info(details, 'relay ended')
      this.#cleanUp()
    }
    const relay = new Relay({ browser, upstream }, { kind: this.#kind, limits, metrics, onEnd })
    this.#relay = relay
    registry.add(relay)
    return undefined
  }

  get #isOver(): boolean {
    return this.#ending !== undefined || this.#aborted.signal.aborted
  }

  #enter(leave: (() => void) | undefined): boolean {
    if (leave === undefined) this.#refuse(ENDINGS.tooManyRelays)
    else this.#cleanups.push(leave)
    return leave !== undefined
  }

  /** The session of the request with a good token; undefined when it was refused. */
  async #session(): Promise<Session | undefined> {
    const { reader, tokens } = this.#parts
    const found = await reader.read(this.#request.headers.cookie)
    if (found.is === 'none') return this.#refuse(ENDINGS.loginRequired)
    if (found.is === 'storeDown') return this.#refuse(ENDINGS.storeDown)
    reader.used(found.session)
    if (tokens.isGood(found.session)) return found.session
    const renewed = await tokens.renewed(found.session)
    if (renewed.is === 'good') return renewed.session
    return this.#refuse(renewed.is === 'ended' ? ENDINGS.sessionExpired : ENDINGS.providerDown)
  }

  /** A fresh one-time URL. A bearer that was refused is renewed once. */
  async #otpUrl(accountId: string, session: Session, mayRenew = true): Promise<URL | undefined> {
    if (this.#isOver) return undefined
    const { otp, tokens } = this.#parts
    const outcome = await otp.request(accountId, session.record.accessToken, this.#request.id)
    switch (outcome.is) {
      case 'url':
        return outcome.url
      case 'refused':
        this.#request.log.warn({ why: outcome.why, code: outcome.ending.code }, 'no one-time URL for a relay')
        return this.#refuse(outcome.ending)
      case 'unauthorized': {
        const renewed = await tokens.afterRefusal(session, mayRenew)
        if (renewed.is === 'good') return this.#otpUrl(accountId, renewed.session, false)
        return this.#refuse(renewed.is === 'ended' ? ENDINGS.sessionExpired : ENDINGS.providerDown)
      }
    }
  }

  async #open(url: URL | string): Promise<void> {
    const { maxUpstreamMessageBytes } = this.#parts.config
    const outcome = await openUpstreamSocket(url, maxUpstreamMessageBytes, this.#aborted.signal)
    if (outcome.is === 'refused') {
      if (this.#isOver) return
      this.#request.log.warn({ why: outcome.why, kind: this.#kind }, 'upstream refused a socket')
      return void this.#refuse(outcome.ending)
    }
    // Until it is joined, an error of it must not take the process down.
    outcome.socket.on('error', () => undefined)
    this.#upstream = outcome.socket
    if (this.#isOver) this.#cleanUp()
  }

  /** Ends the attempt, or the relay it has become. */
  #refuse(ending: Ending): undefined {
    if (this.#relay !== undefined) return void this.#relay.end(ending)
    this.#ending ??= ending
    this.#aborted.abort()
    this.#upstream?.terminate()
  }

  /** The browser left before it was joined. */
  #abandon(): void {
    if (this.#relay !== undefined) return
    this.#aborted.abort()
    this.#cleanUp()
  }

  #cleanUp(): void {
    for (const undo of this.#cleanups.splice(0)) undo()
    if (this.#relay === undefined) this.#upstream?.terminate()
  }
}

/** Demo or real, where the one-time URL tells. */
function kindOf(url: URL): RelayKind {
  const last = url.pathname.split('/').at(-1)
  return last === 'demo' || last === 'real' ? last : 'trading'
}

/** Close codes are the peers' to choose: only those with a meaning here become a label. */
function codeLabel(ending: Ending | undefined): string {
  if (ending === undefined) return '1005'
  const { code } = ending
  return code < 1016 || (code >= 4400 && code <= 4499) ? String(code) : code < 4000 ? '3xxx' : '4xxx'
}
