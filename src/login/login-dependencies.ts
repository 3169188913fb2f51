import type { Config } from '../config/config.ts'
import type { Controls } from '../controls/controls.ts'
import type { Guard } from '../http/guard.ts'
import type { Provider } from '../oauth/provider.ts'
import type { Envelope, Sessions, Subjects } from '../sessions/index.ts'
import type { StoreData, StoreHealth } from '../store/store.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { AttributionCookie } from './attribution-cookie.ts'
import { LoginCookies } from './login-cookies.ts'
import { LoginTransactions } from './login-transactions.ts'
import { StartLimit } from '../limits/start-limit.ts'

interface Shared {
  readonly guard: Guard
  readonly metrics: Metrics
  readonly sessions: Sessions
  /** Undefined where sessions have no subject. */
  readonly subjects: Subjects | undefined
  /** Absent where operators have no token. */
  readonly controls: Controls | undefined
  readonly provider: Provider
  readonly store: StoreData & StoreHealth
  readonly envelope: Envelope
}

/** The parts that a route below /auth may use. */
export type LoginDependencies = ReturnType<typeof createLoginDependencies>

/** Adds the parts that only logins need to the parts that the whole server shares. */
export function createLoginDependencies(
  { cookies, oauth, publicUrl, secrets, session }: Config,
  { store, envelope, ...shared }: Shared,
) {
  const loginCookies = new LoginCookies(cookies, secrets)
  return {
    ...shared,
    config: oauth,
    publicUrl,
    sessionMaxMs: session.maxMs,
    transactions: new LoginTransactions(store, envelope, loginCookies, oauth.loginTtlMs),
    startLimit: new StartLimit(store, oauth.startsPerMinute),
    attributionCookie: new AttributionCookie(cookies, secrets, oauth.attributionTtlMs),
  }
}
