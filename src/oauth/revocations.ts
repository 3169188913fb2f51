import * as client from 'openid-client'
import type { ProviderConfig } from '../config/provider.ts'
import { ProviderRefusal, type TokenGrant } from './grant-outcome.ts'
import { readProviderResponse, UnusableResponse, type RawResponse } from './provider-response.ts'
import type { ProviderTraffic } from './provider-traffic.ts'

const REVOCATION_TIMEOUT_MS = 2_000

/** The tokens of a session. */
export type RevokedTokens = Pick<TokenGrant, 'accessToken' | 'refreshToken'>

/** A token that may still be valid. */
export interface RevocationFailure {
  readonly token: 'refresh_token' | 'access_token'
  /** The status of the response, if there was one. */
  readonly status: number | undefined
  readonly cause: unknown
}

/** Revokes tokens (RFC 7009), and knows which revocations are running. */
export class Revocations {
  readonly #isEnabled: boolean
  readonly #revoker: client.Configuration
  readonly #running = new Set<Promise<unknown>>()

  constructor(config: ProviderConfig, traffic: ProviderTraffic) {
    this.#isEnabled = config.revocationUrl !== undefined
    this.#revoker = traffic.clientFor('revoke', readRevocationResponse, REVOCATION_TIMEOUT_MS)
  }

  /**
   * Revokes both tokens, one after the other: the refresh token first, since it lives longer and could get another
   * access token. The second is tried whether or not the first succeeded. Never rejects. Undefined without REVOCATION_URL.
   */
  revoke({ refreshToken, accessToken }: RevokedTokens): Promise<readonly RevocationFailure[]> | undefined {
    if (!this.#isEnabled) return undefined
    const revocation = this.#revokeInTurn({ refresh_token: refreshToken, access_token: accessToken })
    this.#running.add(revocation)
    return revocation.finally(() => this.#running.delete(revocation))
  }

  /** Resolves once no revocation is running. */
  async finished(): Promise<void> {
    await Promise.all(this.#running)
  }

  async #revokeInTurn(
    tokens: Readonly<Record<RevocationFailure['token'], string | undefined>>,
  ): Promise<RevocationFailure[]> {
    const failures: RevocationFailure[] = []
    for (const hint of ['refresh_token', 'access_token'] as const) {
      const token = tokens[hint]
      if (token === undefined) continue
      try {
        await client.tokenRevocation(this.#revoker, token, { token_type_hint: hint })
      } catch (error) {
        failures.push({ token: hint, ...failureOf(error) })
      }
    }
    return failures
  }
}

function failureOf(error: unknown): Pick<RevocationFailure, 'status' | 'cause'> {
  if (error instanceof client.ResponseBodyError) {
    return { status: error.status, cause: new ProviderRefusal(error.error, error.error_description) }
  }
  const inner = error instanceof client.ClientError ? error.cause : undefined
  return { status: inner instanceof UnusableResponse ? inner.status : undefined, cause: error }
}

/** Reads the response to a revocation (RFC 7009 §2.2), whose body says nothing. @throws UnusableResponse */
async function readRevocationResponse(response: RawResponse): Promise<Response> {
  const read = await readProviderResponse(response)
  return read.is === 'refusal' ? read.refusal : new Response(null, { status: 200 })
}
