/** The knowledge of all instances about a session whose refreshes the provider refuses or limits. Times are the store's (epoch ms). */
export interface Refusals {
  /** When the provider refused the first and the last refresh; 0 where it has only limited them. */
  readonly first: number
  readonly last: number
  readonly count: number
  /** The code of the last refusal (RFC 6749 §5.2). */
  readonly code: string
  /** When the next refresh may be tried. */
  readonly next: number
}

/** The knowledge of all instances about the provider's latest answers to refreshes and logins. Times are the store's (epoch ms). */
export interface ProviderNews {
  /** The two users whom the provider has granted something last. A user is never told apart from two others by fewer. */
  readonly granted: readonly (readonly [user: string, askedAt: number])[]
  /** The latest refusals of each user with each code. */
  readonly refused: readonly (readonly [code: string, user: string, at: number])[]
}

/** Nothing is known. */
export const NO_NEWS: ProviderNews = { granted: [], refused: [] }
/**
 * The name under which logins count among {@link ProviderNews.granted}: a login proves that the provider works, whoever's it
 * is.
 */
export const LOGIN = 'login'
/** A session is forgotten after this time. */
export const FORGET_MS = 3_600_000
/** The time from a refusal to the next try. */
export const RETRY_REFUSED_MS = 30_000

/** Refusals with other codes than these end a session only if they last. */
const MANY = 3
const LASTING_MS = 60_000
/** This many users who are refused with one code within this time may be trouble of the provider. */
const USERS = 3
const WITHIN_MS = 60_000
/** Refusals that are remembered. */
const MAX_REFUSED = 50

/** When refusals of each code end a session whose token has expired. `lasting` for all others. */
const ENDS: ReadonlyMap<string, 'at once' | 'never'> = new Map([
  // The user must do something, or is no longer allowed in.
  ['interaction_required', 'at once'],
  ['login_required', 'at once'],
  ['consent_required', 'at once'],
  ['account_selection_required', 'at once'],
  ['access_denied', 'at once'],
  ['invalid_token', 'at once'],
  ['token_inactive', 'at once'],
  // The request is wrong, whoever's it is.
  ['invalid_request', 'never'],
  ['invalid_scope', 'never'],
  ['unsupported_grant_type', 'never'],
  ['invalid_target', 'never'],
  ['use_dpop_nonce', 'never'],
])

/** A code as a metric label: those that are known here, and `other`. */
export function codeLabel(code: string): string {
  return ENDS.has(code) || code === 'invalid_grant' ? code : 'other'
}

/** The provider has refused a refresh. */
export function refusedOnce(before: Refusals | undefined, code: string, now: number): Refusals {
  const { first = 0, count = 0 } = before ?? {}
  return { first: first === 0 ? now : first, last: now, count: count + 1, code, next: now + RETRY_REFUSED_MS }
}

/** The provider has limited a refresh. */
export function limitedOnce(before: Refusals | undefined, now: number, waitMs: number): Refusals {
  return { ...(before ?? { first: 0, last: 0, count: 0, code: '' }), next: now + waitMs }
}

/** Whether refusals end a session whose token has expired, if the provider has granted others something since. */
export function areFinal({ first, last, count, code }: Refusals): boolean {
  switch (ENDS.get(code)) {
    case 'at once':
      return true
    case 'never':
      return false
    case undefined:
      return count >= MANY && last - first >= LASTING_MS
  }
}

/** Forgets what no longer counts, and times that a store whose clock was ahead has written. To be called first. */
export function pruned({ granted, refused }: ProviderNews, now: number): ProviderNews {
  return {
    granted: granted.filter(([, at]) => at <= now),
    refused: refused.filter(([, , at]) => at <= now && at > now - WITHIN_MS),
  }
}

/** The provider has granted a user what was asked for then. */
export function noteGrant(news: ProviderNews, user: string, askedAt: number): ProviderNews {
  const latest = new Map(news.granted)
  latest.set(user, Math.max(askedAt, latest.get(user) ?? 0))
  return { ...news, granted: [...latest].sort(([, one], [, other]) => other - one).slice(0, 2) }
}

/** Whether the provider has granted something to another user than this since then, or a login. */
export function hasGrantedOthers({ granted }: ProviderNews, user: string, since: number): boolean {
  return granted.some(([other, askedAt]) => other !== user && askedAt > since)
}

/** The provider has refused a user's refresh. Returns the same news if they tell enough already. */
export function noteRefused(news: ProviderNews, code: string, user: string, now: number): ProviderNews {
  const others = news.refused.filter(([other, name]) => other !== code || name !== user)
  const known = others.filter(([other, , at]) => other === code && at > now - WITHIN_MS / 2)
  if (known.length >= USERS) return news
  return { ...news, refused: [...others, [code, user, now] as const].slice(-MAX_REFUSED) }
}

/** Whether several users were refused with one code a short time ago. Each has one entry with a code. */
export function areManyRefused({ refused }: ProviderNews, code: string): boolean {
  return refused.filter(([each]) => each === code).length >= USERS
}
