import { randomBytes } from 'node:crypto'
import * as client from 'openid-client'
import type { Registry } from 'prom-client'
import type { ProviderConfig } from '../config/provider.ts'
import type { OidcConfig } from '../config/oidc.ts'
import { createOidcMetrics, type OidcMetrics } from '../telemetry/oidc-metrics.ts'
import { IdTokens } from './id-tokens.ts'
import { ProviderKeys } from './provider-keys.ts'
import type { ProviderTraffic } from './provider-traffic.ts'

/** A login waits for the keys, instead of for upstream's answer to whose it is. */
const KEYS_TIMEOUT_MS = 3000
/** Where browsers come back to from a logout at the provider. */
export const LOGGED_OUT_PATH = '/auth/logged-out'

/** The part of the client of a provider that only OpenID Connect needs. */
export class OpenId {
  readonly idTokens: IdTokens
  readonly keys: ProviderKeys
  readonly metrics: OidcMetrics
  readonly #client: client.Configuration
  readonly #loggedOutUri: string

  constructor(config: ProviderConfig, oidc: OidcConfig, traffic: ProviderTraffic, registry: Registry) {
    const { jwksUrl = '' } = oidc
    this.keys = new ProviderKeys(() => traffic.document('keys', jwksUrl, KEYS_TIMEOUT_MS))
    this.metrics = createOidcMetrics(registry)
    this.idTokens = new IdTokens(config, oidc, this.keys, this.metrics)
    this.#client = traffic.clientFor('keys', async () => Response.error())
    this.#loggedOutUri = new URL(LOGGED_OUT_PATH, config.redirectUri).href
  }

  /**
   * The address at which a browser logs out at the provider (RP-Initiated Logout §2). Undefined where it has none.
   * @param idToken tells the provider who logs out, with ID_TOKEN_HINT
   */
  endSessionUrl(idToken: string | undefined): URL | undefined {
    if (this.#client.serverMetadata().end_session_endpoint === undefined) return undefined
    return client.buildEndSessionUrl(this.#client, {
      post_logout_redirect_uri: this.#loggedOutUri,
      state: randomBytes(16).toString('base64url'),
      ...(idToken !== undefined && { id_token_hint: idToken }),
    })
  }
}
