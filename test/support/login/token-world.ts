import { pino } from 'pino'
import type { Test } from 'tap'
import { readConfig } from '../../../src/config/config.ts'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import { AccessTokens } from '../../../src/sessions/access-tokens.ts'
import { TokenRenewal } from '../../../src/sessions/token-renewal.ts'
import { Provider } from '../../../src/oauth/provider.ts'
import type { SessionRepository } from '../../../src/sessions/repository.ts'
import type { Session, SessionRecord } from '../../../src/sessions/session.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'
import { StoreUnavailable } from '../../../src/store/store.ts'
import { ALONE } from '../server/settings.ts'
import { instanceOn, newSession } from '../sessions/session-instance.ts'
import { tokenEndpoint, type TokenEndpoint } from './token-endpoint.ts'

/** In milliseconds. */
export const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** A store that can become unavailable, and whose replaces can be delayed. */
class FaultyStore extends MemoryStore {
  isLost = false
  /** Every {@link replace} waits for this. */
  gate: Promise<void> = Promise.resolve()
  replaces = 0
  locks = 0

  override lock(...lock: Parameters<MemoryStore['lock']>): Promise<boolean> {
    this.locks++
    return this.isLost ? Promise.reject(new StoreUnavailable('gone')) : super.lock(...lock)
  }

  override async replace(...change: Parameters<MemoryStore['replace']>): Promise<boolean> {
    this.replaces++
    await this.gate
    return super.replace(...change)
  }
}

/** Sessions whose tokens a scripted endpoint renews, without a server. */
export interface TokenWorld {
  readonly endpoint: TokenEndpoint
  readonly store: FaultyStore
  readonly sessions: SessionRepository
  /** What two instances of the server have, sharing the store. */
  readonly here: AccessTokens
  readonly there: AccessTokens
  /** A session whose token lives for an hour and ends in so many ms. */
  readonly session: (endsInMs: number, more?: Partial<SessionRecord>) => Promise<Session>
}

/** Starts one that ends with the test. */
export async function tokenWorld(t: Test): Promise<TokenWorld> {
  const endpoint = await tokenEndpoint(t)
  const config = readConfig({
    ...ALONE,
    AUTH_URL: endpoint.url,
    REVOCATION_URL: `${endpoint.url}/oauth2/revoke`,
  })
  const store = new FaultyStore()
  const instance = instanceOn(store)
  const { sessions, reader } = instance
  const log = pino({ level: 'silent' })
  const tokensOfAnInstance = (): AccessTokens => {
    const provider = new Provider(config.oauth)
    t.teardown(() => provider.close())
    const renewal = new TokenRenewal({ store, sessions, provider, metrics: createMetrics(), log })
    return new AccessTokens(sessions, reader, renewal)
  }
  const session: TokenWorld['session'] = async (endsInMs, more) => {
    const now = Date.now()
    const tokens = { accessToken: 'first', refreshToken: 'refresh-1', tokenExpiresAt: now + endsInMs }
    const id = await newSession(instance, { ...tokens, endsAt: now + 8 * HOUR, ...more })
    const made = await sessions.load(id)
    if (made === undefined) throw new Error('no session')
    return made
  }
  return { endpoint, store, sessions, here: tokensOfAnInstance(), there: tokensOfAnInstance(), session }
}
