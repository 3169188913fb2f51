import { createHmac } from 'node:crypto'
import { networks } from '../limits/networks.ts'
import type { TokenGrant } from '../oauth/grant-outcome.ts'
import type { Claim, LoginIdentity } from '../oauth/login-identity.ts'
import { storeNow } from '../time/store-time.ts'

const CLOCK_SKEW_MS = 200
/** 96 bits. */
const PAGE_TAG_LENGTH = 16
const SECOND = 1000
/** Time limit of the request for the subject; a login waits for it. */
export const IDENTITY_TIMEOUT_MS = 3000
/** The longest subject. */
export const MAX_CHARACTERS = 256

/** The stored content of a session. It never leaves the server. Times are epoch ms. */
export interface SessionRecord {
  readonly accessToken: string
  readonly tokenExpiresAt: number
  readonly tokenLifetimeMs: number
  readonly refreshToken?: string
  readonly scope: string
  /** The absolute limit of the session. */
  readonly endsAt: number
  /** Store key of the login transaction that created the session; a logout removes it too. */
  readonly loginKey: string
  /** The user of the session, as IDENTITY_POINTER or the ID token names them; absent where that is not known. */
  readonly subject?: string
  /** What the ID token of the login said; absent without OIDC. */
  readonly oidc?: LoginIdentity
  /** The access token was issued because upstream had refused the one before. */
  readonly isAfterRefusal?: true
}

/** A session as it was read from the store. */
export interface Session {
  readonly id: string
  readonly key: string
  /** Identifies the session in the log. */
  readonly tag: string
  /** Identifies the subject in the log. */
  readonly subjectTag?: string
  readonly record: SessionRecord
  /** The idle limit: when the session ends unless it is used (epoch ms). */
  readonly idleEndsAt: number
  /** The stored text, for compare-and-set. */
  readonly sealed: string
}

/** The limits of a session. */
type Limited = Pick<Session, 'idleEndsAt'> & { readonly record: Pick<SessionRecord, 'endsAt'> }

/** The part of a session that its page may know. Times are epoch seconds. */
export type SessionState =
  | { readonly authenticated: false; readonly now: number }
  | ({ readonly authenticated: true; readonly now: number } & SessionLimitsState)

interface SessionLimitsState {
  /** Tells this session from every other, and is no credential. The same for its whole life, on every instance. */
  readonly session: string
  /** When the session ends whatever the user does. */
  readonly expires_at: number
  /** When it ends unless it is used. Never moves back, and is never further ahead than SESSION_IDLE_SECONDS. */
  readonly idle_expires_at: number
  readonly scope: string
  /** The user of the session; absent where that is not known. */
  readonly subject?: string
  /** What the ID token of the login says of the user; only with IDENTITY_CLAIMS. */
  readonly claims?: Readonly<Record<string, Claim>>
}

const SHAPE = {
  accessToken: 'string',
  tokenExpiresAt: 'number',
  tokenLifetimeMs: 'number',
  scope: 'string',
  endsAt: 'number',
  loginKey: 'string',
} as const satisfies Partial<Record<keyof SessionRecord, 'string' | 'number'>>

/** The record in a stored text. Undefined if another version of the server wrote it. */
export function parseRecord(text: string): SessionRecord | undefined {
  try {
    const record = JSON.parse(text) as Record<string, unknown> | null
    const fits = Object.entries(SHAPE).every(([name, type]) => typeof record?.[name] === type)
    return fits ? (record as unknown as SessionRecord) : undefined
  } catch {
    return undefined
  }
}

/** Whether upstream has accepted the bearer token of a call, by the status of its response. A 429 comes before that. */
export function isTokenAccepted(status: number): boolean {
  if (status < 400) return status === 304 || (status >= 200 && status < 300)
  return status < 500 && status !== 401 && status !== 429
}

/** The record of a session, new or refreshed, with the tokens of a grant. */
export function recordOf(
  grant: TokenGrant,
  session: Pick<SessionRecord, 'endsAt' | 'loginKey' | 'scope' | 'subject' | 'oidc'>,
): SessionRecord {
  const { accessToken, expiresAt, refreshToken, scope = session.scope } = grant
  return {
    accessToken,
    tokenExpiresAt: expiresAt,
    tokenLifetimeMs: expiresAt - storeNow(),
    ...(refreshToken !== undefined && { refreshToken }),
    scope,
    // Without a refresh token, the session cannot outlive the access token.
    endsAt: refreshToken === undefined ? Math.min(session.endsAt, expiresAt) : session.endsAt,
    loginKey: session.loginKey,
    ...(session.subject !== undefined && { subject: session.subject }),
    ...(session.oidc !== undefined && { oidc: session.oidc }),
  }
}

/** Whether a session is within both of its limits, by the store's clock. */
export function isLive(session: Session, now = storeNow()): boolean {
  return now < session.idleEndsAt && now < session.record.endsAt
}

/** Which of its limits a session has passed, if any. A moment early, because the store's clock may be ahead. */
export function expiryOf({ idleEndsAt, record }: Limited): 'expired' | 'idle' | undefined {
  const now = storeNow() + CLOCK_SKEW_MS
  if (now >= record.endsAt) return 'expired'
  return now >= idleEndsAt ? 'idle' : undefined
}

/** Whether a text can be the subject of a session: 1 to 256 characters of any kind. */
export function isSubject(text: string): boolean {
  // A lone surrogate has no form in UTF-8, so that different subjects would have the same hash.
  if (text === '' || text.length > 2 * MAX_CHARACTERS || !text.isWellFormed()) return false
  return Array.from(text).length <= MAX_CHARACTERS
}

/**
 * The user to whom the calls of a session count where all users share a limit: its subject, so that several sessions get no
 * more than one, or the session itself where the subject is not known.
 */
export function sharerOf({ key, record: { subject } }: Pick<Session, 'key' | 'record'>): string {
  return subject === undefined ? key : `subject:${subject}`
}

/**
 * The name by which a session counts among the users whom upstream refuses: its subject, or else the site of its client's
 * address, since one user may have many sessions.
 */
export function refusalSource(session: Pick<Session, 'key' | 'record'>, address: string | undefined): string {
  return session.record.subject === undefined ? `address:${networks(address).at(-1)}` : sharerOf(session)
}

/**
 * The state of a session, or of none. The stored idle limit is rounded up to a step, so it may lie a step beyond the setting;
 * a page sees it a step early instead.
 */
export function sessionState(session: Session | undefined, idleMs: number, stepMs: number): SessionState {
  const now = storeNow()
  if (session === undefined) return { authenticated: false, now: Math.floor(now / SECOND) }
  const { idleEndsAt, record } = session
  const isCapped = idleEndsAt >= record.endsAt
  const shownIdleEnd = isCapped ? Math.min(record.endsAt, now + idleMs) : idleEndsAt - stepMs
  return {
    authenticated: true,
    now: Math.floor(now / SECOND),
    session: pageTag(session.id),
    expires_at: Math.floor(record.endsAt / SECOND),
    idle_expires_at: Math.floor(shownIdleEnd / SECOND),
    scope: record.scope,
    ...(record.subject !== undefined && { subject: record.subject }),
    ...(record.oidc?.claims !== undefined && { claims: record.oidc.claims }),
  }
}

/**
 * The tag by which a page knows its session. It follows from the id alone, so that every version and instance of the server finds
 * the same, whatever the server's secrets are; and it leads neither to the id, of 256 random bits, nor to the store key.
 */
export function pageTag(id: string): string {
  return createHmac('sha256', id).update('session tag').digest('base64url').slice(0, PAGE_TAG_LENGTH)
}
