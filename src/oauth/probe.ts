import type { Config } from '../config/config.ts'
import type { CheckResult } from '../config/check-result.ts'
import { ProviderRefusal } from './grant-outcome.ts'
import { Provider } from './provider.ts'
import { UnusableResponse } from './token-response.ts'

const STATE = 'a-check-of-the-settings'
const CLIENT_ADVICE =
  'Check CLIENT_ID and CLIENT_SECRET, and how this client is registered with the provider.'
const ADDRESS_ADVICE = 'Check AUTH_URL: the token endpoint is AUTH_URL + /oauth2/token.'

/**
 * Asks the token endpoint to exchange a code that was never issued. How it refuses shows whether it is a token endpoint and
 * whether it knows this client.
 * @returns the check result, without its setting; or the failure, if the endpoint could not be reached
 */
export async function probeTokenEndpoint(
  config: Config['oauth'],
): Promise<Omit<CheckResult, 'setting'> | { readonly is: 'unreachable'; readonly cause: unknown }> {
  const provider = new Provider(config)
  try {
    const outcome = await provider.exchange(`code=${STATE}&state=${STATE}`, STATE, STATE.padEnd(43, '-'))
    switch (outcome.is) {
      case 'granted':
        return { is: 'failed', message: 'issues tokens for a code that was never issued' }
      case 'refused':
        if (outcome.code === 'invalid_client') {
          return { is: 'failed', message: 'refuses this client (invalid_client)', advice: CLIENT_ADVICE }
        }
        if (!(outcome.cause instanceof ProviderRefusal)) {
          return {
            is: 'failed',
            message: 'is not a token endpoint: it accepts any request',
            advice: ADDRESS_ADVICE,
          }
        }
        return outcome.code === 'invalid_grant'
          ? { is: 'ok', message: 'is a token endpoint that knows this client' }
          : {
              is: 'warning',
              message: `is a token endpoint, but ${outcome.cause.message}`,
              advice: CLIENT_ADVICE,
            }
      case 'unavailable': {
        const { cause } = outcome.cause as Error
        if (!(cause instanceof UnusableResponse)) return { is: 'unreachable', cause: outcome.cause }
        return { is: 'failed', message: `is not a token endpoint: ${cause.why}`, advice: ADDRESS_ADVICE }
      }
    }
  } finally {
    await provider.close()
  }
}
