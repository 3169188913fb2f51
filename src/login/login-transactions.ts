import { randomBytes } from 'node:crypto'
import type { CookieSerializeOptions } from '@fastify/cookie'
import type { Envelope } from '../sessions/index.ts'
import { loginKey } from '../store/keys.ts'
import type { Store } from '../store/store.ts'
import type { AuthError, Flow } from './auth-error.ts'
import { surplusOf, type LoginCookie, type LoginCookies } from './login-cookies.ts'
import { PROVIDER_TIMEOUT_MS } from '../oauth/provider.ts'

const POLL_MS = 100
/** Of a browser's logins the newest are looked up; it has ten at most, and a stranger may send any number. */
const MAX_LOOKED_UP = 10
/** The session that a start carries, and the one that this browser's last login made. */
const MAX_PREVIOUS = 2
/** The exchange, and the store before and after it. Nothing comes of a login that takes longer: its process died. */
const LONGEST_FINISH_MS = PROVIDER_TIMEOUT_MS + 6000

/** About what a record takes beside its return_to: sealed, with its key. */
const RECORD_BYTES = 512

/** How many KiB of the store a login takes that returns to this path, the last one begun. */
export function startedKiB(returnTo: string): number {
  // Sealed it is base64.
  return Math.ceil((RECORD_BYTES + (JSON.stringify(returnTo).length * 4) / 3) / 1024)
}

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
  /** The record as it stands in the store, for compare-and-set. */
  readonly sealed: string
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
  /** Of its record; absent when there is none any more. */
  readonly key?: string
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
type LoginState = ({ readonly is: 'pending' } & LoginTransaction) | Running | LoginOutcome
/** `lost`: there is no record any more. `unreadable`: there is one, and perhaps another instance understands it. */
type KnownLogin = { key: string; cookie: LoginCookie; mark: LoginState | { is: 'lost' | 'unreadable' } }

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

  constructor(store: Store, envelope: Envelope, cookies: LoginCookies, ttlMs: number) {
    this.#store = store
    this.#envelope = envelope
    this.#cookies = cookies
    this.#ttlMs = ttlMs
  }

  /** Whether a Cookie header has login cookies that anybody may have made up, and that would be looked up all the same. */
  hasUnsigned(cookieHeader: string | undefined): boolean {
    return this.#cookies.read(cookieHeader).some(({ isAuthentic }) => !isAuthentic)
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
    const others = await this.#statesOf(cookieHeader)
    const transaction: LoginTransaction = {
      ...{ flow, returnTo, attributed },
      verifier: randomBytes(32).toString('base64url'),
      previous: previousSessions(sessionKey, others),
    }
    const cookie = this.#cookies.create()
    const key = keyOf(cookie)
    const sealed = this.#seal(key, cookie, { is: 'pending', ...transaction })
    await this.#store.create(key, sealed, Date.now() + this.#ttlMs)
    const candidates = others.map(({ cookie: { name }, mark }) => ({ name, inUse: isInUse(mark) }))
    return { ticket: { key, cookie, transaction, sealed }, stale: surplusOf(candidates) }
  }

  /** Whether a Cookie header has the cookie of the login with this state, be it over. */
  knows(cookieHeader: string | undefined, state: string): boolean {
    return this.#cookies.read(cookieHeader).some((cookie) => cookie.state === state)
  }

  /** Uses up the transaction of a state, once. A callback that comes again is given the outcome of the first. */
  async consume(cookieHeader: string | undefined, state: string): Promise<Consumption> {
    const cookie = this.#cookies.read(cookieHeader).find((each) => each.state === state)
    if (cookie === undefined) return { is: 'unknown' }
    const key = keyOf(cookie)
    let waited = false
    for (;;) {
      const stored = await this.#store.readUntracked(key)
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
          const ticket = await this.#claim(
            { key, cookie, transaction, sealed: stored.value },
            stored.expiresAt,
          )
          if (ticket !== undefined) return { is: 'fresh', ticket }
        }
      }
    }
  }

  /** Writes what came of it on the mark, for a callback that comes again. A mark that a logout has removed stays away. */
  async settle({ key, cookie, sealed }: LoginTicket, outcome: LoginOutcome): Promise<void> {
    const until = outcome.is === 'finished' ? outcome.endsAt : Date.now() + this.#ttlMs
    await this.#store.replace(key, sealed, this.#seal(key, cookie, outcome), until)
  }

  /** Logins of this browser that are over, however they ended. */
  async settled(cookieHeader: string | undefined): Promise<SettledLogin[]> {
    const logins = await this.#statesOf(cookieHeader)
    return logins.flatMap(({ key, cookie: { name: cookieName }, mark }) => {
      if (isInUse(mark)) return []
      if (mark.is === 'lost') return { cookieName }
      if (mark.is !== 'finished') return { key, cookieName }
      return { key, cookieName, session: mark.session, cookieValue: mark.cookieValue }
    })
  }

  /** Removes the marks of logins; their cookies are the caller's to delete. */
  async forget(keys: readonly string[]): Promise<void> {
    await Promise.all(keys.map((key) => this.#store.remove(key)))
  }

  /** Attributes of a transaction's cookie; a lifetime of 0 deletes it. */
  attributes(lifetimeMs: number = this.#ttlMs): CookieSerializeOptions {
    return this.#cookies.attributes(lifetimeMs)
  }

  /** Compare-and-set: of several callbacks at the same moment one wins, the others get nothing and see the mark. */
  async #claim(ticket: LoginTicket, expiresAt: number): Promise<LoginTicket | undefined> {
    const { key, cookie, transaction } = ticket
    const { flow, returnTo } = transaction
    const until = Date.now() + LONGEST_FINISH_MS
    const sealed = this.#seal(key, cookie, { is: 'running', flow, returnTo, until })
    // Begun in time, it may end late.
    const isOurs = await this.#store.replace(key, ticket.sealed, sealed, Math.max(expiresAt, until))
    return isOurs ? { key, cookie, transaction, sealed } : undefined
  }

  /** What has become of the logins of a browser, the oldest first. */
  async #statesOf(cookieHeader: string | undefined): Promise<KnownLogin[]> {
    const named = this.#cookies.read(cookieHeader).map((cookie) => ({ cookie, key: keyOf(cookie) }))
    if (named.length === 0) return []
    const newest = named.slice(-MAX_LOOKED_UP)
    const stored = await this.#store.readMany(newest.map(({ key }) => key))
    const texts = [...Array<undefined>(named.length - newest.length), ...stored]
    return named.map(({ cookie, key }, index) => {
      const text = texts[index]
      if (text === undefined) return { key, cookie, mark: { is: 'lost' } }
      return { key, cookie, mark: this.#open(key, cookie, text) ?? { is: 'unreadable' } }
    })
  }

  #seal(key: string, { state, secret }: LoginCookie, mark: LoginState): string {
    return this.#envelope.seal(key, `${state}.${secret}`, JSON.stringify(mark))
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
 * Store keys of the sessions that a new login means to replace: the one that its start carries, and the one that this
 * browser's last login made, whose cookie a link from another site does not bring. What a login under way means to
 * replace is taken over only where neither is known: chained without a bound, the list would grow with every start.
 */
function previousSessions(carried: string | undefined, others: readonly KnownLogin[]): readonly string[] {
  const newestFirst = others.toReversed().map(({ mark }) => mark)
  const keys = [
    ...(carried === undefined ? [] : [carried]),
    ...newestFirst.flatMap((mark) => (mark.is === 'finished' ? mark.session : [])),
    ...newestFirst.flatMap((mark) => (mark.is === 'pending' ? mark.previous : [])),
  ]
  return [...new Set(keys)].slice(0, MAX_PREVIOUS)
}

/** What is neither over nor lost. What cannot be read is left alone. */
function isInUse({ is }: KnownLogin['mark']): boolean {
  return is === 'pending' || is === 'running' || is === 'unreadable'
}
