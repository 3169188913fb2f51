import { createHmac, randomBytes } from 'node:crypto'
import type { CookieSerializeOptions } from '@fastify/cookie'
import type { Config } from '../config.ts'
import type { Envelope } from '../store/envelope.ts'
import { loginKey } from '../store/keys.ts'
import type { Store } from '../store/store.ts'
import { PROVIDER_TIMEOUT_MS } from './provider.ts'

const MAX_PER_BROWSER = 10
/** Cookies beyond this are not looked at: nobody but an attacker has them. */
const MAX_LOOKED_AT = 3 * MAX_PER_BROWSER
const USED = 'used'
const POLL_MS = 100

/** Log in or sign up. */
export type Flow = 'login' | 'signup'

/** What is kept of a started login until its callback. */
export interface LoginTransaction {
  readonly flow: Flow
  readonly returnTo: string
  /** A sign-up that was sent on with a partner's four values. */
  readonly attributed: boolean
  /** PKCE (RFC 7636 §4.1). */
  readonly verifier: string
  /** Store key of the session that this browser had at the start; it ends when the login succeeds. */
  readonly previous?: string
}

/** What the mark of a used transaction says, for a callback that comes again. */
export type LoginOutcome =
  | { readonly is: 'finished'; readonly returnTo: string; readonly sessionKey: string }
  | { readonly is: 'failed'; readonly code: string; readonly flow: Flow; readonly returnTo: string }

/** A transaction this callback, and no other, may carry on. */
export interface LoginTicket {
  readonly key: string
  readonly state: string
  readonly secret: string
  readonly cookieName: string
  readonly cookieValue: string
  readonly transaction: LoginTransaction
}

/** What the state of a callback leads to. */
export type Consumption =
  | { readonly is: 'fresh'; readonly ticket: LoginTicket }
  | { readonly is: 'replayed'; readonly outcome: LoginOutcome }
  | { readonly is: 'unknown' }

type Mark = ({ readonly is: 'pending' } & LoginTransaction) | LoginOutcome

interface LoginCookie {
  readonly name: string
  readonly value: string
  readonly secret: string
  readonly state: string
  readonly startedAt: number
}

/**
 * Started logins. Each has a record of its own, found only by who has both the state (from the provider's redirect)
 * and the cookie's secret, so no other browser can reach it. It is used up by one compare-and-set, which takes the
 * verifier out of the store and leaves a mark.
 *
 * The state is the HMAC of the cookie's secret: as unguessable as the secret, and a cookie alone tells which one it
 * belongs to.
 */
export class LoginTransactions {
  readonly #store: Store
  readonly #envelope: Envelope
  readonly #prefix: string
  readonly #secure: boolean
  readonly #ttlMs: number

  constructor(store: Store, envelope: Envelope, cookies: Config['cookies'], ttlMs: number) {
    this.#store = store
    this.#envelope = envelope
    this.#prefix = `${cookies.prefix}login-`
    this.#secure = cookies.secure
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
    const others = await this.#marks(cookieHeader)
    const previous = wish.sessionKey ?? lastSession(others)
    const transaction: LoginTransaction = {
      flow: wish.flow,
      returnTo: wish.returnTo,
      attributed: wish.attributed,
      verifier: randomBytes(32).toString('base64url'),
      ...(previous === undefined ? {} : { previous }),
    }
    const secret = randomBytes(32).toString('base64url')
    const state = stateOf(secret)
    const key = loginKey(state, secret)
    const ticket: LoginTicket = {
      key,
      state,
      secret,
      cookieName: `${this.#prefix}${state.slice(0, 8)}`,
      cookieValue: `${secret}.${Date.now().toString(36)}`,
      transaction,
    }
    await this.#store.create(
      key,
      this.#seal(ticket, { is: 'pending', ...transaction }),
      Date.now() + this.#ttlMs,
    )
    return { ticket, stale: surplus(others) }
  }

  /** Uses up the transaction of a state, once. A callback that comes again is given the outcome of the first. */
  async consume(cookieHeader: string | undefined, state: string): Promise<Consumption> {
    const cookie = this.#cookies(cookieHeader).find((each) => each.state === state)
    if (cookie === undefined) return { is: 'unknown' }
    const { secret, name: cookieName, value: cookieValue } = cookie
    const key = loginKey(state, secret)
    const giveUpAt = Date.now() + PROVIDER_TIMEOUT_MS + 2000
    while (Date.now() < giveUpAt) {
      const stored = await this.#store.read(key)
      if (stored === undefined) return { is: 'unknown' }
      if (stored.value === USED) {
        // Another request carries it on right now: wait for what comes of it.
        await new Promise((resolve) => void setTimeout(resolve, POLL_MS))
        continue
      }
      const mark = this.#open(key, cookie, stored.value)
      if (mark === undefined) return { is: 'unknown' }
      if (mark.is !== 'pending') return { is: 'replayed', outcome: mark }
      // Compare-and-set: of several callbacks at the same moment one wins, the others see the mark.
      if (await this.#store.replace(key, stored.value, USED, stored.expiresAt)) {
        const { is: _, ...transaction } = mark
        return { is: 'fresh', ticket: { key, state, secret, cookieName, cookieValue, transaction } }
      }
    }
    return { is: 'unknown' }
  }

  /** Writes what came of it on the mark, for a callback that comes again. */
  async settle(ticket: LoginTicket, outcome: LoginOutcome, expiresAt?: number): Promise<void> {
    const until = expiresAt ?? Date.now() + this.#ttlMs
    await this.#store.replace(ticket.key, USED, this.#seal(ticket, outcome), until)
  }

  /** Store keys of the sessions that earlier logins of this browser made. */
  async sessionsMade(cookieHeader: string | undefined): Promise<string[]> {
    const marks = await this.#marks(cookieHeader)
    return marks.flatMap(({ mark }) => (mark?.is === 'finished' ? [mark.sessionKey] : []))
  }

  /** Forgets the finished logins of these sessions; returns the cookies to delete. */
  async forget(cookieHeader: string | undefined, sessionKeys: readonly string[]): Promise<string[]> {
    const marks = await this.#marks(cookieHeader)
    const finished = marks.filter(
      ({ mark }) => mark?.is === 'finished' && sessionKeys.includes(mark.sessionKey),
    )
    await Promise.all(finished.map(({ cookie }) => this.#store.remove(loginKey(cookie.state, cookie.secret))))
    return finished.map(({ cookie }) => cookie.name)
  }

  /** Attributes of a transaction's cookie; a lifetime of 0 deletes it. */
  attributes(lifetimeMs: number = this.#ttlMs): CookieSerializeOptions {
    return {
      path: '/',
      httpOnly: true,
      secure: this.#secure,
      sameSite: 'lax',
      maxAge: Math.ceil(lifetimeMs / 1000),
      encode: String,
    }
  }

  async #marks(cookieHeader: string | undefined): Promise<{ cookie: LoginCookie; mark: Mark | undefined }[]> {
    const cookies = this.#cookies(cookieHeader)
    if (cookies.length === 0) return []
    const keys = cookies.map(({ state, secret }) => loginKey(state, secret))
    const stored = await this.#store.readMany(keys)
    return cookies.map((cookie, index) => {
      const text = stored[index]
      return { cookie, mark: text === undefined ? undefined : this.#open(keys[index] ?? '', cookie, text) }
    })
  }

  #cookies(header: string | undefined): LoginCookie[] {
    const cookies: LoginCookie[] = []
    for (const pair of header?.split(';') ?? []) {
      const [name = '', value = ''] = pair.trim().split('=', 2)
      if (!name.startsWith(this.#prefix) || cookies.length >= MAX_LOOKED_AT) continue
      const [secret = '', startedAt = ''] = value.split('.')
      if (secret.length !== 43) continue
      const state = stateOf(secret)
      cookies.push({ name, value, secret, state, startedAt: Number.parseInt(startedAt, 36) || 0 })
    }
    return cookies.sort((one, other) => one.startedAt - other.startedAt)
  }

  #seal({ key, state, secret }: LoginTicket, mark: Mark): string {
    return this.#envelope.seal(key, `${state}.${secret}`, JSON.stringify(mark))
  }

  #open(key: string, { state, secret }: LoginCookie, text: string): Mark | undefined {
    if (text === USED) return undefined
    const opened = this.#envelope.open(key, `${state}.${secret}`, text)
    return opened === undefined ? undefined : (JSON.parse(opened) as Mark)
  }
}

function stateOf(secret: string): string {
  return createHmac('sha256', secret).update('state').digest('base64url')
}

type Marked = { cookie: LoginCookie; mark: Mark | undefined }

/** The session that this browser's last login made, or the one its last started login means to replace. */
function lastSession(marks: readonly Marked[]): string | undefined {
  const made = marks.findLast(({ mark }) => mark?.is === 'finished')?.mark
  if (made?.is === 'finished') return made.sessionKey
  const noted = marks.findLast(({ mark }) => mark?.is === 'pending' && mark.previous !== undefined)?.mark
  return noted?.is === 'pending' ? noted.previous : undefined
}

/** Names of the cookies that make room for one more: those of used or expired logins first, the oldest first. */
function surplus(marks: readonly Marked[]): string[] {
  const room = marks.length - (MAX_PER_BROWSER - 1)
  const pending = ({ mark }: Marked) => mark?.is === 'pending'
  const order = [...marks.filter((each) => !pending(each)), ...marks.filter(pending)]
  return order.slice(0, Math.max(0, room)).map(({ cookie }) => cookie.name)
}
