import type { Config } from '../config/config.ts'
import type { CheckResult } from '../config/check-result.ts'
import { ProviderRefusal } from './grant-outcome.ts'
import { Provider } from './provider.ts'
import { UnusableResponse } from './token-response.ts'

const STATE = 'a-check-of-the-settings'
const CLIENT_ADVICE = 'Check CLIENT_ID and CLIENT_SECRET, and how this client is registered with the provider.'
const ADDRESS_ADVICE = 'Check AUTH_URL: the token endpoint is AUTH_URL + /oauth2/token.'

/**
 * Asks the token endpoint to exchange a code that was never issued. How it refuses shows whether it is a token endpoint and
 * whether it knows this client.
 * @throws the failure, if the endpoint could not be reached
 */
export async function probeTokenEndpoint(config: Config['oauth']): Promise<Omit<CheckResult, 'setting'>> {
  const provider = new Provider(config)
  try {
    const outcome = await provider.exchange(`code=${STATE}&state=${STATE}`, STATE, STATE.padEnd(43, '-'))
    switch (outcome.is) {
      case 'granted':
        return { is: 'failed', message: 'issues tokens for a code that was never issued' }
      case 'refused': {
        const { code, cause } = outcome
        if (code === 'invalid_client') {
          return { is: 'failed', message: 'refuses this client (invalid_client)', advice: CLIENT_ADVICE }
        }
        if (!(cause instanceof ProviderRefusal)) {
          const message = 'is not a token endpoint: it accepts any request'
          return { is: 'failed', message, advice: ADDRESS_ADVICE }
        }
        if (code === 'invalid_grant') return { is: 'ok', message: 'is a token endpoint that knows this client' }
        return { is: 'warning', message: `is a token endpoint, but ${cause.message}`, advice: CLIENT_ADVICE }
      }
      case 'unavailable': {
        const { cause } = outcome.cause as Error
        if (!(cause instanceof UnusableResponse)) throw outcome.cause
        return { is: 'failed', message: `is not a token endpoint: ${cause.why}`, advice: ADDRESS_ADVICE }
      }
    }
  } finally {
    await provider.close()
  }
}
