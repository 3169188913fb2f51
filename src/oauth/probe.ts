import { generateKeyPairSync, randomBytes, type KeyObject } from 'node:crypto'
import { fetch as undiciFetch } from 'undici'
import type { CheckResult } from '../config/setting-rule.ts'
import type { ClientKey } from '../config/client-key.ts'
import type { Config } from '../config/config.ts'
import type { AuthorizationOutcome } from './authorization-requests.ts'
import { ProviderRefusal, type GrantOutcome } from './grant-outcome.ts'
import { isIssuer, Provider } from './provider.ts'
import { UnusableResponse } from './provider-response.ts'

type OAuth = Config['oauth']

/** The result of a probe. Its message completes a sentence that starts with the address. */
type ProbeResult = Omit<CheckResult, 'setting'>

/** A state and code that were never issued. */
const PROBE = 'a-check-of-the-settings'
/** A PKCE verifier (RFC 7636 §4.1). */
const PROBE_VERIFIER = PROBE.padEnd(43, '-')
const REDIRECT_TIMEOUT_MS = 5000
const MAX_SHOWN = 200

const CLIENT_ADVICE =
  'Check CLIENT_ID, CLIENT_AUTH and its secret or key, and how this client is registered with the provider.'
const ADDRESS_ADVICE = 'Check AUTH_URL: the token endpoint is AUTH_URL + /oauth2/token, unless TOKEN_URL names it.'

/**
 * Asks the token endpoint to exchange a code that was never issued. How it refuses shows whether it is a token endpoint
 * and whether it accepts this client as authenticated.
 * @throws the failure, if the endpoint could not be reached
 */
export async function probeTokenEndpoint(config: OAuth): Promise<ProbeResult> {
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
    case 'unavailable':
      return { is: 'failed', message: `is not a token endpoint: ${faultOf(outcome.cause)}`, advice: ADDRESS_ADVICE }
  }
}

/** Pushes an authorization request that no login will use. @throws the failure, if the endpoint could not be reached */
export async function probePush(config: OAuth): Promise<ProbeResult> {
  const outcome = await requestUrl(config)
  switch (outcome.is) {
    case 'ready':
      return { is: 'ok', message: 'accepts pushed authorization requests' }
    case 'refused': {
      const { code, cause } = outcome
      const message = code === 'invalid_client' ? refusalOf(cause) : `refuses the request: ${(cause as Error).message}`
      return { is: 'failed', message, advice: CLIENT_ADVICE }
    }
    case 'unavailable':
      return { is: 'failed', message: `is not an endpoint for pushed requests: ${faultOf(outcome.cause)}` }
  }
}

/**
 * Makes an authorization request with an unknown response_type, which the provider refuses by a redirect to this client
 * (RFC 6749 §4.1.2.1), and looks at its `iss`. Nothing is left behind at the provider.
 * @returns undefined if it cannot be seen and the settings do not depend on it
 */
export async function probeIssuer(config: OAuth): Promise<ProbeResult | undefined> {
  const callback = await refusedRequest(config).catch(() => undefined)
  if (callback === undefined) {
    const message = 'does not redirect a wrong request to this client, so the iss of its callbacks could not be checked'
    return config.isIssuerNamed || config.issuerRequired ? { is: 'warning', message } : undefined
  }
  const [issuer, ...more] = callback.getAll('iss')
  if (issuer === undefined) {
    if (!config.issuerRequired) return { is: 'ok', message: 'sends callbacks without iss' }
    return { is: 'failed', message: 'sends callbacks without iss, so every login fails (ISSUER_REQUIRED)' }
  }
  if (more.length === 0 && isIssuer(config, issuer)) return { is: 'ok', message: 'sends callbacks with the right iss' }
  const message = `sends callbacks with another iss, so every login fails: ${JSON.stringify(issuer.slice(0, MAX_SHOWN))}`
  return { is: 'failed', message, advice: 'Set ISSUER to exactly this, if it is your provider.' }
}

/** A token endpoint that refuses the code has accepted the client, unless it looks at the code first. */
async function probeAuthentication(config: OAuth): Promise<ProbeResult> {
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

function exchangeNothing(config: OAuth): Promise<GrantOutcome> {
  return withProvider({ ...config, issuerRequired: false }, (provider) =>
    provider.exchange(`code=${PROBE}&state=${PROBE}`, { state: PROBE, verifier: PROBE_VERIFIER, nonce: undefined }),
  )
}

function requestUrl(config: OAuth): Promise<AuthorizationOutcome> {
  return withProvider(config, (provider) =>
    provider.authorizationUrl({ state: PROBE, verifier: PROBE_VERIFIER, signup: undefined }),
  )
}

async function withProvider<Outcome>(
  config: OAuth,
  request: (provider: Provider) => Promise<Outcome>,
): Promise<Outcome> {
  const provider = new Provider(config)
  try {
    return await request(provider)
  } finally {
    await provider.close()
  }
}

async function refusedRequest(config: OAuth): Promise<URLSearchParams | undefined> {
  const request = await requestUrl({ ...config, parUrl: undefined })
  if (request.is !== 'ready') return undefined
  request.url.searchParams.set('response_type', PROBE)
  const signal = AbortSignal.timeout(REDIRECT_TIMEOUT_MS)
  const response = await undiciFetch(request.url, { redirect: 'manual', signal })
  await response.body?.cancel()
  const location = response.headers.get('location') ?? ''
  return location.startsWith(`${config.redirectUri}?`) ? new URL(location).searchParams : undefined
}

/** “refuses this client (invalid_client)” */
function refusalOf(cause: unknown): string {
  return `refuses this client (${cause instanceof ProviderRefusal ? cause.error : 'invalid_client'})`
}

/** The fault of a response that cannot be used. @throws `failure` itself, if there was no response */
function faultOf(failure: unknown): string {
  const { cause } = failure as Error
  if (!(cause instanceof UnusableResponse)) throw failure
  return cause.why
}

function isClientRefused(outcome: GrantOutcome): boolean {
  return outcome.is === 'refused' && outcome.code === 'invalid_client'
}

function withWrongCredential(config: OAuth): OAuth {
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
