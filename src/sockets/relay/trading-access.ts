import type { Authorization, Session, Sessions } from '../../sessions/index.ts'
import { closeOf, CLOSE, type CloseStatus } from '../close-codes.ts'
import type { OtpClient } from './otp.ts'

/** What a trading socket needs, or how its handshake ends. */
export type Access<Granted> =
  | { readonly is: 'granted'; readonly value: Granted }
  | { readonly is: 'refused'; readonly close: CloseStatus; readonly why?: string; readonly cause?: Error }

/** From a browser's cookie to a one-time URL of upstream. */
export class TradingAccess {
  readonly #sessions: Sessions
  readonly #otp: OtpClient

  constructor(sessions: Sessions, otp: OtpClient) {
    this.#sessions = sessions
    this.#otp = otp
  }

  /** The session of a Cookie header, with a token that is good for use. */
  async session(cookie: string | undefined): Promise<Access<Session>> {
    return accessOf(await this.#sessions.authorize(cookie))
  }

  /**
   * A fresh one-time URL. A bearer that was refused is renewed once.
   * @param request who asks; its signal is aborted when nobody waits for it any more
   */
  async url(
    accountId: string,
    session: Session,
    request: { readonly id: string; readonly client: string; readonly signal: AbortSignal },
    mayRenew = true,
  ): Promise<Access<URL>> {
    if (request.signal.aborted) return { is: 'refused', close: CLOSE.ourFault }
    const outcome = await this.#otp.request(accountId, session.record.accessToken, request)
    switch (outcome.is) {
      case 'url':
        return { is: 'granted', value: outcome.url }
      case 'refused':
        return outcome
      case 'unauthorized': {
        const by = { reqId: request.id, client: request.client }
        const renewed = accessOf(await this.#sessions.renewAfterRefusal(session, mayRenew, by))
        return renewed.is === 'granted' ? this.url(accountId, renewed.value, request, false) : renewed
      }
    }
  }

  /** Undefined while the session lives; else how the handshake ends. */
  async ended(session: Session): Promise<CloseStatus | undefined> {
    const { is } = await this.#sessions.reread(session)
    if (is === 'live') return undefined
    return is === 'none' ? CLOSE.sessionExpired : CLOSE.storeDown
  }
}

function accessOf(found: Authorization): Access<Session> {
  return found.is === 'authorized'
    ? { is: 'granted', value: found.session }
    : { is: 'refused', close: closeOf(found) }
}
