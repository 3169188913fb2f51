import { createHash } from 'node:crypto'

/** The longest subject. */
const MAX_NAME_LENGTH = 256
/** The longest `sub` and `sid` (OpenID Connect Core §2). */
const MAX_ID_LENGTH = 255

/** A claim that a page may see. */
export type Claim = string | number | boolean

/** The contents of the ID token of a login. They are kept sealed. */
export interface LoginIdentity {
  readonly iss: string
  readonly sub: string
  /** The session at the provider. */
  readonly sid?: string
  /** When the user authenticated (epoch s). */
  readonly authTime?: number
  /** When the provider issued the token (epoch s). */
  readonly issuedAt: number
  /** The claims that IDENTITY_CLAIMS names; absent without the setting. */
  readonly claims?: Readonly<Record<string, Claim>>
  /** The token itself, only with ID_TOKEN_HINT. */
  readonly idToken?: string
}

/**
 * The name of a user, which is the subject of sessions, or of a session at the provider. Only both parts together are unique.
 * No issuer has a `#`, or a `?`, which a name has that would be longer than a subject may be.
 */
export function nameOf(issuer: string, id: string): string {
  const name = `${issuer}#${id}`
  return name.length <= MAX_NAME_LENGTH ? name : `${issuer}?${createHash('sha256').update(id).digest('base64url')}`
}

/** Whether a value can be a `sub` or a `sid`. */
export function isId(value: unknown): value is string {
  // A lone surrogate has no form in UTF-8, so that different users would have the same hash.
  return typeof value === 'string' && value !== '' && value.length <= MAX_ID_LENGTH && value.isWellFormed()
}
