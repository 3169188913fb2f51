/** The longest `sub` and `sid` (OpenID Connect Core §2). */
const MAX_ID_LENGTH = 255

/** A claim that a page may see. */
export type Claim = string | number | boolean

/** What the ID token of a login says. It is kept sealed. */
export interface LoginIdentity {
  readonly iss: string
  readonly sub: string
  /** The session at the provider. */
  readonly sid?: string
  /** When the user authenticated (epoch s). */
  readonly authTime?: number
  /** When the provider issued the token (epoch s). */
  readonly issuedAt: number
  /** Those of IDENTITY_CLAIMS; absent without the setting. */
  readonly claims?: Readonly<Record<string, Claim>>
  /** The token itself, only with ID_TOKEN_HINT. */
  readonly idToken?: string
}

/** The name of a user, or of a session at the provider. Only both parts together are unique, and no issuer has a `#`. */
export function nameOf(issuer: string, id: string): string {
  return `${issuer}#${id}`
}

/** Whether a value can be a `sub` or a `sid`. */
export function isId(value: unknown): value is string {
  // A lone surrogate has no form in UTF-8, so that different users would have the same hash.
  return typeof value === 'string' && value !== '' && value.length <= MAX_ID_LENGTH && value.isWellFormed()
}
