import { fetch as undiciFetch } from 'undici'
import type { Config } from '../config/config.ts'
import { Provider } from './provider.ts'
import { isIssuer } from './client-configuration.ts'
import { UnusableResponse } from './provider-response.ts'
import { CLIENT_ADVICE, PROBE, PROBE_VERIFIER, refusalOf, type ProbeResult } from './probe.ts'

const TIMEOUT_MS = 5000
const MAX_SHOWN = 200

/** Pushes an authorization request that no login will use. @throws the failure, if the endpoint could not be reached */
export async function probePush(config: Config['oauth']): Promise<ProbeResult> {
  const outcome = await requestUrl(config)
  switch (outcome.is) {
    case 'ready':
      return { is: 'ok', message: 'accepts pushed authorization requests' }
    case 'refused': {
      const { code, cause } = outcome
      const message = code === 'invalid_client' ? refusalOf(cause) : `refuses the request: ${(cause as Error).message}`
      return { is: 'failed', message, advice: CLIENT_ADVICE }
    }
    case 'unavailable': {
      const { cause } = outcome.cause as Error
      if (!(cause instanceof UnusableResponse)) throw outcome.cause
      return { is: 'failed', message: `is not an endpoint for pushed requests: ${cause.why}` }
    }
  }
}

/**
 * Makes an authorization request with an unknown response_type, which the provider refuses by a redirect to this client
 * (RFC 6749 §4.1.2.1), and looks at its `iss`. Nothing is left behind at the provider.
 * @returns undefined if it cannot be seen and the settings do not depend on it
 */
export async function probeIssuer(config: Config['oauth']): Promise<ProbeResult | undefined> {
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

async function refusedRequest(config: Config['oauth']): Promise<URLSearchParams | undefined> {
  const request = await requestUrl({ ...config, parUrl: undefined })
  if (request.is !== 'ready') return undefined
  request.url.searchParams.set('response_type', PROBE)
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const response = await undiciFetch(request.url, { redirect: 'manual', signal })
  await response.body?.cancel()
  const location = response.headers.get('location') ?? ''
  return location.startsWith(`${config.redirectUri}?`) ? new URL(location).searchParams : undefined
}

async function requestUrl(config: Config['oauth']) {
  const provider = new Provider(config)
  try {
    return await provider.authorizationUrl({ state: PROBE, verifier: PROBE_VERIFIER, signup: undefined })
  } finally {
    await provider.close()
  }
}
