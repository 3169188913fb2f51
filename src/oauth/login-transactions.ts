import { randomBytes } from 'node:crypto'
import type { CookieSerializeOptions } from '@fastify/cookie'
import type { Config } from '../config.ts'
import type { Envelope } from '../store/envelope.ts'
import { loginKey } from '../store/keys.ts'
import type { Store } from '../store/store.ts'
import type { AuthError, Flow } from './auth-error.ts'
import { LoginCookies, surplusOf, type LoginCookie } from './login-cookies.ts'
import { PROVIDER_TIMEOUT_MS } from './provider.ts'

const POLL_MS = 100
/** The exchange, and the store before and after it. Nothing comes of a login that takes longer: its process died. */
const LONGEST_FINISH_MS = PROVIDER_TIMEOUT_MS + 6000

/** What is kept of a started login until its callback. */
interface LoginTransaction {
  readonly flow: Flow
  readonly returnTo: string
  /** A sign-up that was sent on with a partner's four values. */
  readonly attributed: boolean
  /** PKCE (RFC 7636 §4.1). */
  readonly verifier: string
  /** Store keys of the sessions this browser had at the start; they end when the login succeeds. */
  readonly previous: readonly string[]
}

/** What the mark of a used transaction says, for a callback that comes again. */
export type LoginOutcome =
  | {
      readonly is: 'finished'
      readonly returnTo: string
      /** Store key of the session. */
      readonly session: string
      readonly cookieValue: string
      /** Epoch ms: of the session, and of its cookie. */
      readonly endsAt: number
      readonly cookieEndsAt: number
    }
  | { readonly is: 'failed'; readonly error: AuthError; readonly flow: Flow; readonly returnTo: string }

/** A transaction this callback, and no other, may carry on. */
export interface LoginTicket {
  readonly key: string
  readonly cookie: LoginCookie
  readonly transaction: LoginTransaction
}

/** What the state of a callback leads to. */
export type Consumption =
  | { readonly is: 'fresh'; readonly ticket: LoginTicket }
  /** `waited`: another callback carried it on meanwhile, and its answer may have reached nobody. */
  | {
      readonly is: 'replayed'
      readonly outcome: LoginOutcome
      readonly waited: boolean
      readonly cookie: LoginCookie
    }
  /** Whoever carried it on did not live to tell. */
  | { readonly is: 'abandoned'; readonly flow: Flow; readonly returnTo: string }
  | { readonly is: 'unknown' }

/** What a settled login leaves in a browser and in the store. */
export interface SettledLogin {
  readonly key: string
  readonly cookieName: string
  /** Store key of the session it made, if it did, and the value of its cookie. */
  readonly session?: string
  readonly cookieValue?: string
}

type Running = {
  readonly is: 'running'
  readonly flow: Flow
  readonly returnTo: string
  /** When its outcome is known at the latest (epoch ms). */
  readonly until: number
}
type Mark = ({ readonly is: 'pending' } & LoginTransaction) | Running | LoginOutcome
/** `lost`: there is no record any more. `unreadable`: there is one, and perhaps another instance understands it. */
type Marked = { key: string; cookie: LoginCookie; mark: Mark | { is: 'lost' | 'unreadable' } }

/**
 * Started logins. Each has a record of its own, found only by who has both the state (from the provider's redirect)
 * and the cookie's secret, so no other browser can reach it. It is used up by one compare-and-set, which takes the
 * verifier out of the store and leaves a mark.
 */
export class LoginTransactions {
  readonly #store: Store
  readonly #envelope: Envelope
  readonly #cookies: LoginCookies
  readonly #ttlMs: number

  constructor(store: Store, envelope: Envelope, cookies: Config['cookies'], ttlMs: number) {
    this.#store = store
    this.#envelope = envelope
    this.#cookies = new LoginCookies(cookies)
    this.#ttlMs = ttlMs
  }

  /**
   * Starts one. `stale` are the cookies to delete so that a browser holds ten at most.
   * @param sessionKey the session the request itself carries, if any
   * @throws StoreUnavailable
   */
  async start(
    cookieHeader: string | undefined,
    wish: { flow: Flow; returnTo: string; attributed: boolean; sessionKey: string | undefined },
  ): Promise<{ ticket: LoginTicket; stale: string[] }> {
    const { flow, returnTo, attributed, sessionKey } = wish
    const others = await this.#marks(cookieHeader)
    const transaction: LoginTransaction = {
      ...{ flow, returnTo, attributed },
      verifier: randomBytes(32).toString('base64url'),
      previous: [...new Set([sessionKey ?? [], ...others.map(({ mark }) => sessionsOf(mark))].flat())],
    }
    const cookie = this.#cookies.create()
    const key = loginKey(cookie.state, cookie.secret)
    const pending = this.#seal(key, cookie, { is: 'pending', ...transaction })
    await this.#store.create(key, pending, Date.now() + this.#ttlMs)
    const candidates = others.map(({ cookie: { name }, mark }) => ({ name, inUse: isInUse(mark) }))
    return { ticket: { key, cookie, transaction }, stale: surplusOf(candidates) }
  }

  /** Uses up the transaction of a state, once. A callback that comes again is given the outcome of the first. */
  async consume(cookieHeader: string | undefined, state: string): Promise<Consumption> {
    const cookie = this.#cookies.read(cookieHeader).find((each) => each.state === state)
    if (cookie === undefined) return { is: 'unknown' }
    const key = loginKey(state, cookie.secret)
    let waited = false
    for (;;) {
      const stored = await this.#store.glance(key)
      const mark = stored && this.#open(key, cookie, stored.value)
      if (stored === undefined || mark === undefined) return { is: 'unknown' }
      switch (mark.is) {
        case 'finished':
        case 'failed':
          return { is: 'replayed', outcome: mark, waited, cookie }
        case 'running':
          if (Date.now() > mark.until) return { is: 'abandoned', flow: mark.flow, returnTo: mark.returnTo }
          waited = true
          await new Promise((resolve) => void setTimeout(resolve, POLL_MS))
          continue
        case 'pending': {
          const { is: _, ...transaction } = mark
          const ticket = { key, cookie, transaction }
          if (await this.#markRunning(ticket, stored)) return { is: 'fresh', ticket }
        }
      }
    }
  }

  /** Writes what came of it on the mark, for a callback that comes again. */
  async settle(ticket: LoginTicket, outcome: LoginOutcome): Promise<void> {
    const { key, cookie } = ticket
    const running = await this.#store.glance(key)
    // Gone: the browser has logged out meanwhile, on another tab.
    if (running === undefined) return
    const until = outcome.is === 'finished' ? outcome.endsAt : Date.now() + this.#ttlMs
    await this.#store.replace(key, running.value, this.#seal(key, cookie, outcome), until)
  }

  /** Logins of this browser that are over, however they ended. */
  async settled(cookieHeader: string | undefined): Promise<SettledLogin[]> {
    const marks = await this.#marks(cookieHeader)
    return marks.flatMap(({ key, cookie: { name: cookieName }, mark }) => {
      if (isInUse(mark)) return []
      if (mark.is !== 'finished') return { key, cookieName }
      return { key, cookieName, session: mark.session, cookieValue: mark.cookieValue }
    })
  }

  /** Removes the marks of logins; their cookies are the caller's to delete. */
  async forget(logins: readonly { key: string }[]): Promise<void> {
    await Promise.all(logins.map(({ key }) => this.#store.remove(key)))
  }

  /** Attributes of a transaction's cookie; a lifetime of 0 deletes it. */
  attributes(lifetimeMs: number = this.#ttlMs): CookieSerializeOptions {
    return this.#cookies.attributes(lifetimeMs)
  }

  /** Compare-and-set: of several callbacks at the same moment one wins, the others see the mark. */
  async #markRunning(
    { key, cookie, transaction: { flow, returnTo } }: LoginTicket,
    stored: { value: string; expiresAt: number },
  ): Promise<boolean> {
    const until = Date.now() + LONGEST_FINISH_MS
    const running = this.#seal(key, cookie, { is: 'running', flow, returnTo, until })
    // Begun in time, it may end late.
    return this.#store.replace(key, stored.value, running, Math.max(stored.expiresAt, until))
  }

  async #marks(cookieHeader: string | undefined): Promise<Marked[]> {
    const cookies = this.#cookies.read(cookieHeader)
    if (cookies.length === 0) return []
    const keys = cookies.map(({ state, secret }) => loginKey(state, secret))
    const stored = await this.#store.readMany(keys)
    return cookies.map((cookie, index) => {
      const [key = '', text] = [keys[index], stored[index]]
      if (text === undefined) return { key, cookie, mark: { is: 'lost' } }
      return { key, cookie, mark: this.#open(key, cookie, text) ?? { is: 'unreadable' } }
    })
  }

  #seal(key: string, { state, secret }: LoginCookie, mark: Mark): string {
    return this.#envelope.seal(key, `${state}.${secret}`, JSON.stringify(mark))
  }

  #open(key: string, { state, secret }: LoginCookie, text: string): Mark | undefined {
    const opened = this.#envelope.open(key, `${state}.${secret}`, text)
    return opened === undefined ? undefined : (JSON.parse(opened) as Mark)
  }
}

/** The sessions a mark knows of: the one it made, or those its login means to replace. */
function sessionsOf(mark: Marked['mark']): readonly string[] {
  if (mark.is === 'finished') return [mark.session]
  return mark.is === 'pending' ? mark.previous : []
}

/** What is neither over nor lost. What cannot be read is left alone. */
function isInUse({ is }: Marked['mark']): boolean {
  return is === 'pending' || is === 'running' || is === 'unreadable'
}
