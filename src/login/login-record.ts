import type { Envelope } from '../sessions/index.ts'
import { loginKey } from '../store/keys.ts'
import type { AuthError, Flow } from './return-to.ts'
import type { LoginCookie } from './login-cookies.ts'

/** Approximate size of a sealed record and its key, without the return path. */
const BASE_RECORD_BYTES = 512

/** Size in the store of the record of a login with this return path, in KiB, rounded up. */
export function recordKiB(returnTo: string): number {
  // The sealed text is base64.
  return Math.ceil((BASE_RECORD_BYTES + (JSON.stringify(returnTo).length * 4) / 3) / 1024)
}

/** The stored content of a started login until its callback. */
export interface LoginTransaction {
  readonly flow: Flow
  readonly returnTo: string
  /** True for a sign-up with all four parameters of a partner. */
  readonly attributed: boolean
  /** PKCE (RFC 7636 §4.1). */
  readonly verifier: string
  /** Binds the ID token to this login (OpenID Connect Core §3.1.2.1); absent without OIDC. */
  readonly nonce?: string
  /** Store keys of the sessions that this login replaces: they end when it succeeds. */
  readonly previous: readonly string[]
}

/** The final state of a login, for a callback that is repeated. */
export type LoginOutcome =
  | {
      readonly is: 'finished'
      readonly flow: Flow
      readonly returnTo: string
      /** Store key of the session. */
      readonly session: string
      readonly cookieValue: string
      /** Of the session and of its cookie (epoch ms). */
      readonly endsAt: number
      readonly cookieEndsAt: number
    }
  | {
      readonly is: 'failed'
      readonly error: AuthError
      readonly flow: Flow
      readonly returnTo: string
      /** As in {@link LoginTransaction}; absent where an instance of version 0.3 has written it. */
      readonly previous?: readonly string[]
    }

/** A callback is completing the login. */
interface Running {
  readonly is: 'running'
  readonly flow: Flow
  readonly returnTo: string
  /** As in {@link LoginTransaction}; absent where an instance of version 0.3 has written it. */
  readonly previous?: readonly string[]
  /** The time by which the login is settled, unless its process has died (epoch ms). */
  readonly until: number
}

/** The content of the record of a login. */
export type LoginState = ({ readonly is: 'pending' } & LoginTransaction) | Running | LoginOutcome

/** The store key of a login's record. It can be found only with both the OAuth state and the secret of the cookie. */
export function keyOf({ state, secret }: LoginCookie): string {
  return loginKey(state, secret)
}

/** Encrypts a record, so that only the browser with the cookie can read it. */
export function sealLogin(envelope: Envelope, cookie: LoginCookie, loginState: LoginState): string {
  return envelope.seal(keyOf(cookie), secretOf(cookie), JSON.stringify(loginState))
}

/** Decrypts a record; undefined if that is not possible here, for example because another instance has newer secrets. */
export function openLogin(envelope: Envelope, cookie: LoginCookie, text: string): LoginState | undefined {
  const key = keyOf(cookie)
  const secret = secretOf(cookie)
  // An instance of version 0.3 seals a login with a nonce so.
  const opened = envelope.open(key, secret, text) ?? envelope.open(key, `${secret}.nonce`, text)
  return opened === undefined ? undefined : (JSON.parse(opened) as LoginState)
}

function secretOf({ state, secret }: LoginCookie): string {
  return `${state}.${secret}`
}
