import { decodeJwt, decodeProtectedHeader, type JWTPayload, type ProtectedHeaderParameters } from 'jose'
import type { ProviderConfig } from '../config/provider.ts'
import { isId, nameOf } from './login-identity.ts'
import { SIGNATURE_ALGORITHMS } from './provider-keys.ts'
import { storeNow } from '../time/store-time.ts'

const EVENT = 'http://schemas.openid.net/event/backchannel-logout'
/** How far the clock of the provider may be ahead, and how late a token may end (s). */
const TOLERANCE = 30
/** How old a token may be (s), without an `exp` and with one. */
const MAX_AGE = 300
const MAX_AGE_WITH_EXP = 3600
/** Three parts in base64url, without padding and white space (RFC 7515 §2, §3.1). The last one is empty in an unsigned token. */
const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]*$/
/** With or without the part of a media type that may be left out (RFC 7515 §4.1.9). */
const TYPES = new Set<unknown>([undefined, 'logout+jwt', 'application/logout+jwt', 'jwt'])

/** The provider tells to end a session of its own, all sessions of a user, or names both. */
export interface LogoutToken {
  /** The subject of sessions. */
  readonly subject?: string
  /** The name of a session at the provider. */
  readonly sid?: string
  /** Epoch s. */
  readonly issuedAt: number
}

/** Why a token is false. */
export type LogoutFault =
  | 'shape'
  | 'algorithm'
  | 'issuer'
  | 'audience'
  | 'type'
  | 'age'
  | 'expired'
  | 'events'
  | 'subject'
  | 'nonce'

/** The contents of a token, before its signature was checked. */
type LogoutReading =
  | { readonly is: 'readable'; readonly token: LogoutToken }
  /** `ageSeconds` by the clock of this server, where the age is the fault; negative for a token from the future. */
  | { readonly is: 'false'; readonly fault: LogoutFault; readonly ageSeconds?: number }

/**
 * Reads a logout token (OpenID Connect Back-Channel Logout §2.4, §2.6). It checks everything but the signature, which costs the most:
 * strangers send tokens, too.
 */
export function readLogoutToken(
  text: string,
  { issuer, clientId }: Pick<ProviderConfig, 'issuer' | 'clientId'>,
): LogoutReading {
  // The decoders of jose and Node are more lenient.
  if (!COMPACT.test(text)) return { is: 'false', fault: 'shape' }
  let header: ProtectedHeaderParameters
  let claims: JWTPayload
  try {
    header = decodeProtectedHeader(text)
    claims = decodeJwt(text)
  } catch {
    return { is: 'false', fault: 'shape' }
  }
  const { alg, typ } = header
  const { iss, aud, iat } = claims
  const { exp, sub, sid } = withoutNull({ exp: claims.exp, sub: claims.sub, sid: claims['sid'] })
  if (alg === undefined || !SIGNATURE_ALGORITHMS.includes(alg)) return { is: 'false', fault: 'algorithm' }
  if (iss !== issuer) return { is: 'false', fault: 'issuer' }
  if (![aud].flat().includes(clientId)) return { is: 'false', fault: 'audience' }
  if (!TYPES.has(typeof typ === 'string' ? typ.toLowerCase() : typ)) return { is: 'false', fault: 'type' }
  const now = storeNow() / 1000
  const isCurrent = typeof exp === 'number' && now < exp + TOLERANCE
  if (typeof iat !== 'number' || !Number.isFinite(iat)) return { is: 'false', fault: 'age' }
  const age = now - iat
  if (age < -TOLERANCE || age > (isCurrent ? MAX_AGE_WITH_EXP : MAX_AGE)) {
    return { is: 'false', fault: 'age', ageSeconds: Math.round(age) }
  }
  if (exp !== undefined && !isCurrent) return { is: 'false', fault: 'expired' }
  if (!hasEvent(claims['events'])) return { is: 'false', fault: 'events' }
  const isNamed = (sub !== undefined || sid !== undefined) && [sub, sid].every((id) => id === undefined || isId(id))
  if (!isNamed) return { is: 'false', fault: 'subject' }
  // With one it could be an ID token.
  if ('nonce' in claims) return { is: 'false', fault: 'nonce' }
  const token: LogoutToken = {
    ...(sub !== undefined && { subject: nameOf(iss, sub) }),
    ...(isId(sid) && { sid: nameOf(iss, sid) }),
    issuedAt: iat,
  }
  return { is: 'readable', token }
}

/** Some providers write null for a member that is not there. */
function withoutNull<Members extends object>(members: Members): Partial<Members> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null)) as Partial<Members>
}

function hasEvent(events: unknown): boolean {
  if (!(events instanceof Object) || !Object.hasOwn(events, EVENT)) return false
  const event: unknown = (events as Record<string, unknown>)[EVENT]
  return event instanceof Object && !Array.isArray(event)
}
