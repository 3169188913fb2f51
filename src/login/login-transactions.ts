import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { CookieSerializeOptions } from '@fastify/cookie'
import { IDENTITY_TIMEOUT_MS, type Envelope } from '../sessions/index.ts'
import { loginKey } from '../store/keys.ts'
import type { Store } from '../store/store.ts'
import type { AuthError, Flow } from './auth-error.ts'
import { MAX_PER_BROWSER, type LoginCookie, type LoginCookies } from './login-cookies.ts'
import { PROVIDER_TIMEOUT_MS } from '../oauth/provider-traffic.ts'

const POLL_MS = 100
/** The session of the request that starts the login, and the one that this browser's last login created. */
const MAX_PREVIOUS = 2
/** For the code exchange, the question whose session it is, and the store operations around them. If a login takes longer, its process has died. */
const MAX_FINISH_MS = PROVIDER_TIMEOUT_MS + IDENTITY_TIMEOUT_MS + 6000

/** Approximate size of a sealed record and its key, without the return path. */
const BASE_RECORD_BYTES = 512

/** Size in the store of the record of a login with this return path, in KiB, rounded up. */
export function recordKiB(returnTo: string): number {
  // The sealed text is base64.
  return Math.ceil((BASE_RECORD_BYTES + (JSON.stringify(returnTo).length * 4) / 3) / 1024)
}

/** What is stored about a started login until its callback. */
interface LoginTransaction {
  readonly flow: Flow
  readonly returnTo: string
  /** True for a sign-up with all four parameters of a partner. */
  readonly attributed: boolean
  /** PKCE (RFC 7636 §4.1). */
  readonly verifier: string
  /** Store keys of the sessions that this login replaces: they end when it succeeds. */
  readonly previous: readonly string[]
}

/** The final state of a login, for a callback that is repeated. */
export type LoginOutcome =
  | {
      readonly is: 'finished'
      readonly returnTo: string
      /** Store key of the session. */
      readonly session: string
      readonly cookieValue: string
      /** Of the session and of its cookie (epoch ms). */
      readonly endsAt: number
      readonly cookieEndsAt: number
    }
  | { readonly is: 'failed'; readonly error: AuthError; readonly flow: Flow; readonly returnTo: string }

/** A transaction that this callback, and no other, may complete. */
export interface LoginTicket {
  readonly key: string
  readonly cookie: LoginCookie
  readonly transaction: LoginTransaction
  /** The stored text, for compare-and-set. */
  readonly sealed: string
}

/** What {@link LoginTransactions.consume} found. */
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

/** What a finished or failed login has left in the browser and in the store. */
export interface SettledLogin {
  /**
   * Store key of the record of a finished login. A failed one has nothing that must end, and expires by itself: to remove
   * ten of them would cost a logout, which a stranger may send, ten commands.
   */
  readonly key?: string
  readonly cookieName: string
  /** Store key and cookie value of the session that it created. */
  readonly session?: string
  readonly cookieValue?: string
}

interface Running {
  readonly is: 'running'
  readonly flow: Flow
  readonly returnTo: string
  /** By when the login is settled, unless its process has died (epoch ms). */
  readonly until: number
}

type LoginState = ({ readonly is: 'pending' } & LoginTransaction) | Running | LoginOutcome

interface BrowserLogin {
  readonly key: string
  readonly cookie: LoginCookie
  /** `lost`: the record is gone; `unreadable`: this instance cannot decrypt it, but another one may. */
  readonly loginState: LoginState | { readonly is: 'lost' | 'unreadable' }
}

/**
 * Started logins. Each has its own record, which can be found only with both the OAuth state (from the provider's
 * redirect) and the cookie's secret, so no other browser can reach it. A login goes from pending to running, and then to
 * finished or failed, by compare-and-set. The PKCE verifier leaves the store with the first step.
 */
export class LoginTransactions {
  readonly #store: Store
  readonly #envelope: Envelope
  readonly #cookies: LoginCookies
  readonly #ttlMs: number

  constructor(store: Store, envelope: Envelope, cookies: LoginCookies, ttlMs: number) {
    this.#store = store
    this.#envelope = envelope
    this.#cookies = cookies
    this.#ttlMs = ttlMs
  }

  /** Whether a Cookie header has unsigned login cookies, which may be made up but still cause lookups in the store. */
  hasUnsigned(cookieHeader: string | undefined): boolean {
    return this.#cookies.read(cookieHeader).some(({ isAuthentic }) => !isAuthentic)
  }

  /**
   * Starts a login. `stale` are the names of cookies to delete, so that a browser has ten at most.
   * @param options `sessionKey`: store key of the session of the request, if any
   * @throws StoreUnavailable
   */
  async start(
    cookieHeader: string | undefined,
    options: { flow: Flow; returnTo: string; attributed: boolean; sessionKey: string | undefined },
  ): Promise<{ ticket: LoginTicket; stale: string[] }> {
    const { flow, returnTo, attributed, sessionKey } = options
    const earlier = await this.#loginsOf(cookieHeader)
    const transaction: LoginTransaction = {
      flow,
      returnTo,
      attributed,
      verifier: randomBytes(32).toString('base64url'),
      previous: previousSessions(sessionKey, earlier),
    }
    const cookie = this.#cookies.create()
    const key = keyOf(cookie)
    const sealed = this.#seal(key, cookie, { is: 'pending', ...transaction })
    await this.#store.create(key, sealed, Date.now() + this.#ttlMs)
    return { ticket: { key, cookie, transaction, sealed }, stale: surplusOf(earlier) }
  }

  /** Whether a Cookie header has the cookie for an OAuth state. Does not use the store. */
  knows(cookieHeader: string | undefined, state: string): boolean {
    return this.#cookies.read(cookieHeader).some((cookie) => cookie.state === state)
  }

  /** Claims the login of an OAuth state for the first callback. A repeated callback receives the outcome of the first. */
  async consume(cookieHeader: string | undefined, state: string): Promise<Consumption> {
    const cookie = this.#cookies.read(cookieHeader).find((each) => each.state === state)
    if (cookie === undefined) return { is: 'unknown' }
    const key = keyOf(cookie)
    let waited = false
    for (;;) {
      const stored = await this.#store.readUntracked(key)
      const login = stored && this.#open(key, cookie, stored.value)
      if (stored === undefined || login === undefined) return { is: 'unknown' }
      switch (login.is) {
        case 'finished':
        case 'failed':
          return { is: 'replayed', outcome: login, waited, cookie }
        case 'running':
          if (Date.now() > login.until) return { is: 'abandoned', flow: login.flow, returnTo: login.returnTo }
          waited = true
          await delay(POLL_MS)
          continue
        case 'pending': {
          const { is: _, ...transaction } = login
          const pending = { key, cookie, transaction, sealed: stored.value }
          const ticket = await this.#claim(pending, stored.expiresAt)
          if (ticket !== undefined) return { is: 'fresh', ticket }
        }
      }
    }
  }

  /** Stores the outcome of a login for a repeated callback, unless a logout has removed the record meanwhile. */
  async settle({ key, cookie, sealed }: LoginTicket, outcome: LoginOutcome): Promise<void> {
    const until = outcome.is === 'finished' ? outcome.endsAt : Date.now() + this.#ttlMs
    await this.#store.replace(key, sealed, this.#seal(key, cookie, outcome), until)
  }

  /** The finished, failed and lost logins of this browser. */
  async settled(cookieHeader: string | undefined): Promise<SettledLogin[]> {
    const logins = await this.#loginsOf(cookieHeader)
    return logins.flatMap(({ key, cookie: { name: cookieName }, loginState }) => {
      if (isInUse(loginState)) return []
      if (loginState.is !== 'finished') return { cookieName }
      return { key, cookieName, session: loginState.session, cookieValue: loginState.cookieValue }
    })
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
  async #claim(ticket: LoginTicket, expiresAt: number): Promise<LoginTicket | undefined> {
    const { key, cookie, transaction } = ticket
    const { flow, returnTo } = transaction
    const until = Date.now() + MAX_FINISH_MS
    const sealed = this.#seal(key, cookie, { is: 'running', flow, returnTo, until })
    // A callback that arrives in time may finish after the login's expiry.
    const isClaimed = await this.#store.replace(key, ticket.sealed, sealed, Math.max(expiresAt, until))
    return isClaimed ? { key, cookie, transaction, sealed } : undefined
  }

  /** The logins of a browser, oldest first. */
  async #loginsOf(cookieHeader: string | undefined): Promise<BrowserLogin[]> {
    const named = this.#cookies.read(cookieHeader).map((cookie) => ({ cookie, key: keyOf(cookie) }))
    if (named.length === 0) return []
    // A request may carry more cookies than a browser has, so only the newest are looked up.
    const newest = named.slice(-MAX_PER_BROWSER)
    const stored = await this.#store.readMany(newest.map(({ key }) => key))
    const texts = [...Array<undefined>(named.length - newest.length), ...stored]
    return named.map(({ cookie, key }, index) => {
      const text = texts[index]
      if (text === undefined) return { key, cookie, loginState: { is: 'lost' } }
      return { key, cookie, loginState: this.#open(key, cookie, text) ?? { is: 'unreadable' } }
    })
  }

  #seal(key: string, { state, secret }: LoginCookie, loginState: LoginState): string {
    return this.#envelope.seal(key, `${state}.${secret}`, JSON.stringify(loginState))
  }

  #open(key: string, { state, secret }: LoginCookie, text: string): LoginState | undefined {
    const opened = this.#envelope.open(key, `${state}.${secret}`, text)
    return opened === undefined ? undefined : (JSON.parse(opened) as LoginState)
  }
}

function keyOf({ state, secret }: LoginCookie): string {
  return loginKey(state, secret)
}

/**
 * Store keys of the sessions that a new login replaces: that of the request which starts it, and that of this browser's
 * last finished login, whose strict cookie is not sent if the request comes from a link on another site. What
 * pending logins replace comes last; without a bound, that would make the list grow with every start.
 */
function previousSessions(current: string | undefined, earlier: readonly BrowserLogin[]): readonly string[] {
  const newestFirst = earlier.toReversed().map(({ loginState }) => loginState)
  const keys = [
    ...(current === undefined ? [] : [current]),
    ...newestFirst.flatMap((login) => (login.is === 'finished' ? login.session : [])),
    ...newestFirst.flatMap((login) => (login.is === 'pending' ? login.previous : [])),
  ]
  return [...new Set(keys)].slice(0, MAX_PREVIOUS)
}

/** Names of the cookies to delete before one more is set: the oldest, and those of logins in use last. */
function surplusOf(logins: readonly BrowserLogin[]): string[] {
  const unused = logins.filter(({ loginState }) => !isInUse(loginState))
  const inUse = logins.filter(({ loginState }) => isInUse(loginState))
  const surplus = Math.max(0, logins.length + 1 - MAX_PER_BROWSER)
  return [...unused, ...inUse].slice(0, surplus).map(({ cookie }) => cookie.name)
}

/** Whether a login may still be completed. One that cannot be decrypted here may still be completed by another instance. */
function isInUse({ is }: BrowserLogin['loginState']): boolean {
  return is === 'pending' || is === 'running' || is === 'unreadable'
}
