import { decodeJwt } from 'jose'
import type { IDToken, TokenEndpointResponse, TokenEndpointResponseHelpers } from 'openid-client'
import type { OidcConfig } from '../config/oidc.ts'
import type { ProviderConfig } from '../config/provider.ts'
import type { OidcMetrics } from '../telemetry/oidc-metrics.ts'
import { loginFailed, type FailedOutcome } from './grant-outcome.ts'
import { isId, type Claim, type LoginIdentity } from './login-identity.ts'
import type { ProviderKeys } from './provider-keys.ts'

/** A claim that is larger is not shown to pages; neither are those that are too much together. */
const MAX_CLAIM_BYTES = 1024
const MAX_CLAIMS_BYTES = 4096

/** A longer ID token is not kept as a hint: it becomes a part of an address. */
const MAX_HINT_LENGTH = 8192

/** The identity in an ID token, or why the login fails. */
type Identification = { readonly is: 'known'; readonly identity: LoginIdentity } | FailedOutcome

/** A response of the token endpoint that openid-client has accepted. */
export type AcceptedTokens = TokenEndpointResponse & Pick<TokenEndpointResponseHelpers, 'claims'>

/** Reads ID tokens. openid-client has checked the claims of those of logins (OpenID Connect Core §3.1.3.7). */
export class IdTokens {
  readonly #config: ProviderConfig
  readonly #oidc: OidcConfig
  readonly #keys: ProviderKeys
  readonly #metrics: OidcMetrics

  constructor(config: ProviderConfig, oidc: OidcConfig, keys: ProviderKeys, metrics: OidcMetrics) {
    this.#config = config
    this.#oidc = oidc
    this.#keys = keys
    this.#metrics = metrics
  }

  /** Checks the signature of a login's ID token, and reads it. Never rejects. */
  async identify(tokens: AcceptedTokens): Promise<Identification> {
    const { id_token: idToken } = tokens
    const claims = tokens.claims()
    if (idToken === undefined || claims === undefined) return loginFailed('there is no ID token')
    const signature = await this.#keys.check(idToken, 'login')
    switch (signature.is) {
      case 'away':
        return { is: 'unavailable', code: 'provider_unavailable', cause: signature.cause }
      case 'invalid':
        return loginFailed('the signature of the ID token is not valid', signature.cause)
      case 'valid':
        return this.#read(claims, idToken)
    }
  }

  /**
   * Whether the ID token of a refresh names the provider and the user of the session (OpenID Connect Core §12.2). Nothing else
   * of it is used, so it may have expired. Its signature is not checked: it came over TLS from the token endpoint.
   */
  names(idToken: unknown, sub: string | undefined): boolean {
    try {
      const claims = decodeJwt(String(idToken))
      return claims.iss === this.#config.issuer && claims.sub !== undefined && claims.sub === sub
    } catch {
      return false
    }
  }

  #read(claims: IDToken, idToken: string): Identification {
    const { iss, sub, iat: issuedAt, auth_time: authTime } = claims
    // Some providers write null for a member that is not there.
    const sid = claims['sid'] ?? undefined
    const azp = claims.azp ?? undefined
    // openid-client looks at it only if there are several audiences.
    if (azp !== undefined && azp !== this.#config.clientId)
      return loginFailed('the ID token is for another party (azp)')
    if (!isId(sub)) return loginFailed('the sub of the ID token is empty or too long')
    if (sid !== undefined && !isId(sid)) return loginFailed('the sid of the ID token is no text, empty or too long')
    const identity: LoginIdentity = {
      iss,
      sub,
      ...(sid !== undefined && { sid }),
      ...(authTime !== undefined && { authTime }),
      issuedAt,
      ...(this.#oidc.claims.length > 0 && { claims: this.#shown(claims) }),
      ...(this.#oidc.keepsIdToken && idToken.length <= MAX_HINT_LENGTH && { idToken }),
    }
    return { is: 'known', identity }
  }

  /** The claims that a page may see, in the order of the setting. */
  #shown(claims: IDToken): Record<string, Claim> {
    const shown: [string, Claim][] = []
    let total = 0
    for (const name of this.#oidc.claims) {
      const value: unknown = Object.hasOwn(claims, name) ? claims[name] : undefined
      if (value === undefined || value === null) continue
      if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') {
        this.#metrics.claimsLeftOut.inc({ why: 'type' })
        continue
      }
      const bytes = Buffer.byteLength(String(value))
      if (bytes > MAX_CLAIM_BYTES || total + bytes > MAX_CLAIMS_BYTES) {
        this.#metrics.claimsLeftOut.inc({ why: 'size' })
        continue
      }
      total += bytes
      shown.push([name, value])
    }
    return Object.fromEntries(shown)
  }
}
