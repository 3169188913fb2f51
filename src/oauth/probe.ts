import { generateKeyPairSync, randomBytes, type KeyObject } from 'node:crypto'
import type { CheckResult } from '../config/setting-rule.ts'
import type { ClientKey } from '../config/client-key.ts'
import type { Config } from '../config/config.ts'
import { ProviderRefusal, type GrantOutcome } from './grant-outcome.ts'
import { Provider } from './provider.ts'
import { UnusableResponse } from './provider-response.ts'

/** A state and code that were never issued. */
export const PROBE = 'a-check-of-the-settings'
/** A PKCE verifier (RFC 7636 §4.1). */
export const PROBE_VERIFIER = PROBE.padEnd(43, '-')

/** The result of a probe. Its message completes a sentence that starts with the address. */
export type ProbeResult = Omit<CheckResult, 'setting'>

/** Advice to the operator about a client that the provider refuses. */
export const CLIENT_ADVICE =
  'Check CLIENT_ID, CLIENT_AUTH and its secret or key, and how this client is registered with the provider.'
const ADDRESS_ADVICE = 'Check AUTH_URL: the token endpoint is AUTH_URL + /oauth2/token, unless TOKEN_URL names it.'

/**
 * Asks the token endpoint to exchange a code that was never issued. How it refuses shows whether it is a token endpoint
 * and whether it accepts this client as authenticated.
 * @throws the failure, if the endpoint could not be reached
 */
export async function probeTokenEndpoint(config: Config['oauth']): Promise<ProbeResult> {
  const outcome = await exchangeNothing(config)
  switch (outcome.is) {
    case 'granted':
      return { is: 'failed', message: 'issues tokens for a code that was never issued' }
    case 'refused': {
      const { code, cause } = outcome
      if (code === 'invalid_client') return { is: 'failed', message: refusalOf(cause), advice: CLIENT_ADVICE }
      if (!(cause instanceof ProviderRefusal)) {
        const { code: fault } = cause as { code?: string }
        const why =
          fault === 'OAUTH_RESPONSE_IS_NOT_CONFORM' ? 'it refuses without an error code' : 'it accepts any request'
        return { is: 'failed', message: `is not a token endpoint: ${why}`, advice: ADDRESS_ADVICE }
      }
      const authentication = await probeAuthentication(config)
      if (code === 'invalid_grant') return authentication
      // Refused for another reason than the code, so a login may fail, too.
      const message = `${authentication.message}, but ${cause.message} instead of invalid_grant`
      return { is: 'warning', message, advice: authentication.advice ?? CLIENT_ADVICE }
    }
    case 'unavailable': {
      const { cause } = outcome.cause as Error
      if (!(cause instanceof UnusableResponse)) throw outcome.cause
      return { is: 'failed', message: `is not a token endpoint: ${cause.why}`, advice: ADDRESS_ADVICE }
    }
  }
}

/** “refuses this client (invalid_client)” */
export function refusalOf(cause: unknown): string {
  return `refuses this client (${cause instanceof ProviderRefusal ? cause.error : 'invalid_client'})`
}

/** A token endpoint that refuses the code has accepted the client, unless it looks at the code first. */
async function probeAuthentication(config: Config['oauth']): Promise<ProbeResult> {
  const { clientAuth, clientKeys } = config
  if (clientAuth === 'none') return { is: 'ok', message: 'is a token endpoint that knows this client' }
  const [, nextKey] = clientKeys
  if (clientAuth === 'private_key_jwt' && nextKey !== undefined) {
    const next = await exchangeNothing({ ...config, clientKeys: [nextKey] })
    if (isClientRefused(next)) {
      const message = 'is a token endpoint that knows the first key of CLIENT_KEY, but not the second'
      return { is: 'warning', message, advice: 'Register the second key before you move it to the first place.' }
    }
  }
  if (isClientRefused(await exchangeNothing(withWrongCredential(config)))) {
    return { is: 'ok', message: `is a token endpoint that accepts this client as authenticated (${clientAuth})` }
  }
  const message = `is a token endpoint, but does not refuse a wrong credential either (${clientAuth})`
  const advice = 'It may look at the code first, or this client may be registered as a public one.'
  return { is: 'warning', message, advice }
}

async function exchangeNothing(config: Config['oauth']): Promise<GrantOutcome> {
  const provider = new Provider({ ...config, issuerRequired: false })
  try {
    return await provider.exchange(`code=${PROBE}&state=${PROBE}`, PROBE, PROBE_VERIFIER)
  } finally {
    await provider.close()
  }
}

function isClientRefused(outcome: GrantOutcome): boolean {
  return outcome.is === 'refused' && outcome.code === 'invalid_client'
}

function withWrongCredential(config: Config['oauth']): Config['oauth'] {
  const clientKeys = config.clientKeys.map((key) => ({ ...key, key: strangerOf(key) }))
  return { ...config, clientSecret: randomBytes(16).toString('hex'), clientKeys }
}

/** Another key of the same kind. */
function strangerOf({ algorithm, key }: ClientKey): KeyObject {
  const { namedCurve = 'prime256v1' } = key.asymmetricKeyDetails ?? {}
  if (key.asymmetricKeyType === 'ed25519') return generateKeyPairSync('ed25519').privateKey
  return algorithm.startsWith('ES')
    ? generateKeyPairSync('ec', { namedCurve }).privateKey
    : generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
}
