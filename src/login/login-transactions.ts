import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { CookieSerializeOptions } from '@fastify/cookie'
import { backoffMs } from '../time/backoff.ts'
import { IDENTITY_TIMEOUT_MS, type Envelope } from '../sessions/index.ts'
import { PendingWrites } from '../store/pending-writes.ts'
import { wasSent, type StoreData, type StoredValue, type StoreHealth } from '../store/store.ts'
import { PROVIDER_TIMEOUT_MS } from '../oauth/provider-traffic.ts'
import type { Flow } from './return-to.ts'
import {
  browserLogins,
  previousSessions,
  sessionsOf,
  settledOf,
  surplusOf,
  type SettledLogin,
} from './browser-logins.ts'
import type { LoginCookie, LoginCookies } from './login-cookies.ts'
import { keyOf, openLogin, sealLogin, type LoginOutcome, type LoginTransaction } from './login-record.ts'
import { storeNow } from '../time/store-time.ts'

/** The first pause of a callback that waits for another one; each further one is twice as long. */
const POLLS = { firstMs: 100, longestMs: Infinity }
/**
 * For the code exchange, the request to upstream for the subject, and the store operations around them. If a login takes longer, its
 * process has died.
 */
const MAX_FINISH_MS = PROVIDER_TIMEOUT_MS + IDENTITY_TIMEOUT_MS + 6000

/** So many beginnings of one login may wait to be taken back: a browser that repeats its callback must not take the places of others. */
const MAX_LOST_BEGINNINGS = 8

/** A transaction that its holder alone may complete. */
export interface LoginTicket {
  readonly key: string
  readonly cookie: LoginCookie
  readonly transaction: LoginTransaction
  /** The stored text, for compare-and-set, and those whose writes had no reply. {@link LoginTransactions.settle} replaces them. */
  sealed: readonly string[]
}

/** How a login starts. */
interface StartOptions {
  readonly flow: Flow
  readonly returnTo: string
  readonly attributed: boolean
  /** Store key of the session of the request, if any. */
  readonly sessionKey: string | undefined
  readonly hasNonce: boolean
}

/** The result of {@link LoginTransactions.consume}. */
export type Consumption =
  | { readonly is: 'fresh'; readonly ticket: LoginTicket }
  /** `waited`: another callback completed the login meanwhile, and its response may not have reached the browser. */
  | {
      readonly is: 'replayed'
      readonly outcome: LoginOutcome
      readonly waited: boolean
      readonly cookie: LoginCookie
    }
  /** The process that was completing the login died. */
  | { readonly is: 'abandoned'; readonly flow: Flow; readonly returnTo: string }
  | { readonly is: 'unknown' }

/**
 * Started logins. Each has its own record, which can be found only with both the OAuth state (from the provider's
 * redirect) and the cookie's secret, so no other browser can reach it. A login goes from pending to running, and then to
 * finished or failed, by compare-and-set. The PKCE verifier leaves the store with the first step.
 */
export class LoginTransactions {
  readonly #store: StoreData & StoreHealth
  /** Beginnings to take back. */
  readonly #pending: PendingWrites
  #lostBeginnings = 0
  readonly #envelope: Envelope
  readonly #cookies: LoginCookies
  readonly #ttlMs: number

  constructor(store: StoreData & StoreHealth, envelope: Envelope, cookies: LoginCookies, ttlMs: number) {
    this.#store = store
    this.#pending = new PendingWrites(store)
    this.#envelope = envelope
    this.#cookies = cookies
    this.#ttlMs = ttlMs
  }

  /**
   * Starts a login. `stale` are the names of cookies to delete, so that ten are left at most.
   * @throws StoreUnavailable
   */
  async start(
    cookieHeader: string | undefined,
    options: StartOptions,
  ): Promise<{ ticket: LoginTicket; stale: string[] }> {
    const { flow, returnTo, attributed, sessionKey, hasNonce } = options
    const earlier = await browserLogins(this.#cookies.read(cookieHeader), this.#store, this.#envelope)
    const stale = surplusOf(earlier)
    const transaction: LoginTransaction = {
      flow,
      returnTo,
      attributed,
      verifier: randomBytes(32).toString('base64url'),
      ...(hasNonce && { nonce: randomBytes(32).toString('base64url') }),
      previous: previousSessions(sessionKey, earlier, stale),
    }
    const cookie = this.#cookies.create()
    const key = keyOf(cookie)
    const sealed = sealLogin(this.#envelope, cookie, { is: 'pending', ...transaction })
    await this.#store.create(key, sealed, storeNow() + this.#ttlMs)
    return { ticket: { key, cookie, transaction, sealed: [sealed] }, stale }
  }

  /** Whether a Cookie header has the cookie for an OAuth state. Does not use the store. */
  knows(cookieHeader: string | undefined, state: string): boolean {
    return this.#cookies.read(cookieHeader).some((cookie) => cookie.state === state)
  }

  /**
   * Begins to complete the login of an OAuth state, for its first callback. A repeated callback waits for the outcome of the first. It
   * reads the store nine times at most, since a stranger may repeat callbacks as often as they like while the provider is slow.
   */
  async consume(cookieHeader: string | undefined, state: string): Promise<Consumption> {
    const cookie = this.#cookies.read(cookieHeader).find((each) => each.state === state)
    if (cookie === undefined) return { is: 'unknown' }
    const key = keyOf(cookie)
    let waited = false
    for (let reads = 0; ; reads++) {
      const stored = await this.#store.readUntracked(key)
      const login = stored && openLogin(this.#envelope, cookie, stored.value)
      if (stored === undefined || login === undefined) return { is: 'unknown' }
      switch (login.is) {
        case 'finished':
        case 'failed':
          return { is: 'replayed', outcome: login, waited, cookie }
        case 'running': {
          const leftMs = login.until - storeNow()
          if (leftMs < 0) return { is: 'abandoned', flow: login.flow, returnTo: login.returnTo }
          waited = true
          await delay(Math.min(backoffMs(reads, POLLS), leftMs + 1))
          continue
        }
        case 'pending': {
          const { is: _, ...transaction } = login
          const ticket = await this.#begin({ key, cookie, transaction }, stored)
          if (ticket !== undefined) return { is: 'fresh', ticket }
        }
      }
    }
  }

  /**
   * Stores the outcome of a login, for repeated callbacks, later logins and logouts. A finished outcome may be replaced by a failed one.
   * Does nothing where the record is gone or somebody else has changed it.
   * @throws StoreUnavailable; that a login has failed is stored once the store is back
   */
  async settle(ticket: LoginTicket, outcome: LoginOutcome): Promise<void> {
    const { key, cookie } = ticket
    const sealed = sealLogin(this.#envelope, cookie, outcome)
    const until = outcome.is === 'finished' ? outcome.endsAt : storeNow() + this.#ttlMs
    const former = ticket.sealed
    ticket.sealed = [sealed, ...former]
    const write = async (): Promise<boolean> => {
      for (const text of former) {
        if (!(await this.#store.replace(key, text, sealed, until))) continue
        ticket.sealed = [sealed]
        return true
      }
      return false
    }
    await write().catch((error: unknown) => {
      // Otherwise a repeated callback would wait for an outcome, or find one that is not true any more.
      if (outcome.is === 'failed') this.#pending.undo(write, until, sealed.length, key)
      throw error
    })
  }

  /** The finished, failed and lost logins of this browser, and the sessions that only its other logins have noted. */
  async settled(cookieHeader: string | undefined): Promise<SettledLogin[]> {
    return settledOf(await browserLogins(this.#cookies.read(cookieHeader), this.#store, this.#envelope, true))
  }

  /**
   * The sessions of this browser that its other logins have made or noted: the values of their cookies, where known, by store keys.
   * @param state of the login that is not asked for
   */
  async otherSessions(
    cookieHeader: string | undefined,
    state: string,
  ): Promise<ReadonlyMap<string, string | undefined>> {
    const cookies = this.#cookies.read(cookieHeader).filter((cookie) => cookie.state !== state)
    return sessionsOf(await browserLogins(cookies, this.#store, this.#envelope))
  }

  /** Removes the records of logins. The caller deletes their cookies. */
  async forget(keys: readonly string[]): Promise<void> {
    await Promise.all(keys.map((key) => this.#store.remove(key)))
  }

  /** Attributes of a login cookie; a lifetime of 0 deletes it. */
  attributes(lifetimeMs = this.#ttlMs): CookieSerializeOptions {
    return this.#cookies.attributes(lifetimeMs)
  }

  /** Compare-and-set from pending to running. Of several concurrent callbacks, one wins; the others get undefined. */
  async #begin(
    { key, cookie, transaction }: Omit<LoginTicket, 'sealed'>,
    { value, expiresAt }: StoredValue,
  ): Promise<LoginTicket | undefined> {
    const { flow, returnTo, previous } = transaction
    const until = storeNow() + MAX_FINISH_MS
    const sealed = sealLogin(this.#envelope, cookie, { is: 'running', flow, returnTo, previous, until })
    // A callback that arrives in time may finish after the login's expiry.
    const begin = this.#store.replace(key, value, sealed, Math.max(expiresAt, until))
    const hasBegun = await begin.catch((error: unknown) => {
      // This callback does not go on, so another one may: nobody has sent the code.
      const undo = () => this.#store.replace(key, sealed, value, expiresAt)
      if (wasSent(error)) this.#pending.undo(undo, until, 0, `${key} ${this.#lostBeginnings++ % MAX_LOST_BEGINNINGS}`)
      throw error
    })
    return hasBegun ? { key, cookie, transaction, sealed: [sealed] } : undefined
  }
}
