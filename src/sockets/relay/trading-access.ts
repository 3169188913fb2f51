import type { Session } from '../../sessions/sessions.ts'
import { ENDINGS, type Ending } from '../close-codes.ts'
import type { OtpClient } from './otp.ts'
import type { RelayParts } from './relay-parts.ts'

/** What a trading socket needs, or how its handshake ends. */
export type Access<Granted> =
  | { readonly is: 'granted'; readonly value: Granted }
  | { readonly is: 'refused'; readonly ending: Ending; readonly why?: string; readonly cause?: Error }

/** From a browser's cookie to a one-time URL of upstream. */
export class TradingAccess {
  readonly #parts: Pick<RelayParts, 'reader' | 'tokens'>
  readonly #otp: OtpClient

  constructor(parts: Pick<RelayParts, 'reader' | 'tokens'>, otp: OtpClient) {
    this.#parts = parts
    this.#otp = otp
  }

  /** The session of a Cookie header, with a token that is good for use. @throws StoreUnavailable */
  async session(cookie: string | undefined): Promise<Access<Session>> {
    const { reader, tokens } = this.#parts
    const found = await reader.use(cookie)
    if (found.is === 'none') return { is: 'refused', ending: ENDINGS.loginRequired }
    if (found.is === 'storeDown') return { is: 'refused', ending: ENDINGS.storeDown }
    if (tokens.isGood(found.session)) return { is: 'granted', value: found.session }
    return granted(await tokens.renewed(found.session))
  }

  /**
   * A fresh one-time URL. A bearer that was refused is renewed once.
   * @param request who asks; its signal is aborted when nobody waits for it any more
   * @throws StoreUnavailable
   */
  async url(
    accountId: string,
    session: Session,
    request: { readonly id: string; readonly client: string; readonly signal: AbortSignal },
    mayRenew = true,
  ): Promise<Access<URL>> {
    if (request.signal.aborted) return { is: 'refused', ending: ENDINGS.ourFault }
    const outcome = await this.#otp.request(accountId, session.record.accessToken, request)
    switch (outcome.is) {
      case 'url':
        return { is: 'granted', value: outcome.url }
      case 'refused':
        return outcome
      case 'unauthorized': {
        const by = { reqId: request.id, client: request.client }
        const renewed = granted(await this.#parts.tokens.afterRefusal(session, mayRenew, by))
        return renewed.is === 'granted' ? this.url(accountId, renewed.value, request, false) : renewed
      }
    }
  }

  /** Undefined while the session lives; else how the handshake ends. */
  async ended(session: Session): Promise<Ending | undefined> {
    const { is } = await this.#parts.reader.reload(session.id)
    if (is === 'live') return undefined
    return is === 'none' ? ENDINGS.sessionExpired : ENDINGS.storeDown
  }
}

function granted(lookup: Awaited<ReturnType<RelayParts['tokens']['renewed']>>): Access<Session> {
  if (lookup.is === 'good') return { is: 'granted', value: lookup.session }
  return { is: 'refused', ending: lookup.is === 'ended' ? ENDINGS.sessionExpired : ENDINGS.providerDown }
}
