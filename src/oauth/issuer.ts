import type { ProviderConfig } from '../config/provider.ts'

/**
 * Whether an `iss` is that of the provider. RFC 9207 §2.4 compares it exactly, but AUTH_URL is stored without the trailing
 * slash that some issuers have.
 */
export function isIssuer({ issuer, isIssuerNamed }: ProviderConfig, received: unknown): boolean {
  return received === issuer || (!isIssuerNamed && received === `${issuer}/`)
}
