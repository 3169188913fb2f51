import type { CheckResult } from '../config/setting-rule.ts'
import type { ProviderConfig } from '../config/provider.ts'
import type { AuthorizationOutcome } from './authorization-requests.ts'
import { ProviderRefusal, type GrantOutcome } from './grant-outcome.ts'
import { Provider } from './provider.ts'
import { UnusableResponse } from './provider-response.ts'

/** The result of a probe. Its message completes a sentence that starts with the address. */
export type ProbeResult = Omit<CheckResult, 'setting'>

/** A state and code that were never issued. */
const PROBE = 'a-check-of-the-settings'
/** A PKCE verifier (RFC 7636 §4.1). */
const PROBE_VERIFIER = PROBE.padEnd(43, '-')

/** Advice about a provider that does not accept this client. */
export const CLIENT_ADVICE =
  'Check CLIENT_ID, CLIENT_AUTH and its secret or key, and how this client is registered with the provider.'

/** Advice about a response that does not say who refuses this client. */
export const BARE_401_ADVICE = `${CLIENT_ADVICE} If a proxy or another page answers there, check the address and what the proxy lets through.`

/** Advice about a provider that does not accept the authorization requests of this client. */
export const REQUEST_ADVICE = `${CLIENT_ADVICE} Its redirect URI must be PUBLIC_URL + /auth/callback. If it must push its requests, set PAR_URL; signed request objects are not supported.`

/** Asks the token endpoint to exchange a code that was never issued. */
export function exchangeNothing(config: ProviderConfig): Promise<GrantOutcome> {
  return withProvider({ ...config, issuerRequired: false }, (provider) =>
    provider.exchange(`code=${PROBE}&state=${PROBE}`, {
      state: PROBE,
      verifier: PROBE_VERIFIER,
      nonce: undefined,
      startedAt: Date.now(),
    }),
  )
}

/**
 * The address of an authorization request that no login will use, pushed first if PAR_URL is set.
 * @param prompt replaces that of AUTHORIZATION_PARAMS
 */
export function requestUrl(config: ProviderConfig, prompt?: 'none'): Promise<AuthorizationOutcome> {
  const others = config.authorizationParams.filter(([name]) => name !== 'prompt')
  const authorizationParams =
    prompt === undefined ? config.authorizationParams : [...others, ['prompt', prompt] as const]
  return withProvider({ ...config, authorizationParams }, (provider) =>
    provider.authorizationUrl({ state: PROBE, verifier: PROBE_VERIFIER, signup: undefined }),
  )
}

/** Whether the provider did not accept who asks. */
export function isClientRefused(outcome: GrantOutcome): boolean {
  return (outcome.is === 'refused' && outcome.code === 'invalid_client') || isBare401(outcome)
}

/** Whether the response was a 401 that says nothing: of a provider that does not know who asks, or of a proxy before it. */
export function isBare401(outcome: GrantOutcome | AuthorizationOutcome): boolean {
  const failure = 'cause' in outcome ? outcome.cause : undefined
  const response = failure instanceof Error ? failure.cause : undefined
  return (response instanceof UnusableResponse || response instanceof Response) && response.status === 401
}

/** Whether the provider refused the code alone, and so accepted who asks, unless it looks at the code first. */
export function isClientAccepted(outcome: GrantOutcome): boolean {
  return outcome.is === 'refused' && outcome.cause instanceof ProviderRefusal && !isClientRefused(outcome)
}

/** “refuses this client (invalid_client: no such client)” */
export function clientRefusal(cause: unknown): string {
  if (!(cause instanceof ProviderRefusal)) return 'refuses this client without an error, or a proxy does (401)'
  const { error, description } = cause
  return `refuses this client (${error}${description === undefined ? '' : `: ${description}`})`
}

async function withProvider<Outcome>(
  config: ProviderConfig,
  request: (provider: Provider) => Promise<Outcome>,
): Promise<Outcome> {
  const provider = new Provider(config)
  try {
    return await request(provider)
  } finally {
    await provider.close()
  }
}
