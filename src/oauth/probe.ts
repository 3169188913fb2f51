import { generateKeyPairSync, randomBytes, type KeyObject } from 'node:crypto'
import { Changeable } from '../config/changing.ts'
import type { ClientKey } from '../config/client-key.ts'
import type { ProviderConfig } from '../config/provider.ts'
import { ProviderRefusal } from './grant-outcome.ts'
import { clockDoubt } from './probe-clock.ts'
import {
  BARE_401_ADVICE,
  CLIENT_ADVICE,
  exchangeNothing,
  isBare401,
  isClientAccepted,
  isClientRefused,
  clientRefusal,
  REQUEST_ADVICE,
  requestUrl,
  type ProbeResult,
} from './probe-requests.ts'
import { UnusableResponse } from './provider-response.ts'

const ADDRESS_ADVICE = 'Check AUTH_URL: the token endpoint is AUTH_URL + /oauth2/token, unless TOKEN_URL names it.'
const BLIND_SPOT =
  'No check can see whether the provider wants tokens of this client to be bound to a key (DPoP, mutual TLS): try a login.'
/** A provider may want another algorithm for the same key (RFC 7518 §3.1, RFC 9864). */
const OTHER_ALGORITHM: Readonly<Record<string, string>> = {
  RS256: 'PS256',
  PS256: 'RS256',
  Ed25519: 'EdDSA',
  EdDSA: 'Ed25519',
}
/** Errors of a provider that demands proofs (RFC 9449 §5, §8). */
const DPOP_ERRORS: ReadonlySet<string> = new Set(['invalid_dpop_proof', 'use_dpop_nonce'])

/**
 * Asks the token endpoint to exchange a code that was never issued. How it refuses shows whether it is a token endpoint
 * and whether it accepts this client as authenticated, by each of its keys.
 * @param aheadSeconds how far the clock of this machine is ahead of the provider's, if that is known
 * @throws the failure, if the endpoint could not be reached
 */
export async function probeTokenEndpoint(config: ProviderConfig, aheadSeconds?: number): Promise<ProbeResult> {
  const outcome = await exchangeNothing(config)
  if (outcome.is !== 'granted' && isClientRefused(outcome)) return refusedClient(config, outcome.cause, aheadSeconds)
  switch (outcome.is) {
    case 'granted':
      return { is: 'failed', message: 'issues tokens for a code that was never issued' }
    case 'refused': {
      const { code, cause } = outcome
      if (!(cause instanceof ProviderRefusal)) {
        const { code: fault } = cause as { code?: string }
        const why =
          fault === 'OAUTH_RESPONSE_IS_NOT_CONFORM' ? 'it refuses without an error code' : 'it accepts any request'
        return { is: 'failed', message: `is not a token endpoint: ${why}`, advice: ADDRESS_ADVICE }
      }
      if (DPOP_ERRORS.has(cause.error)) {
        const message = `wants tokens to be bound to a key (DPoP), so every login fails: ${cause.message}`
        return { is: 'failed', message, advice: 'Register this client for bearer tokens: upstream takes no others.' }
      }
      const authentication = await probeAuthentication(config)
      if (code === 'invalid_grant') return authentication
      // Refused for another reason than the code, so a login may fail, too.
      const message = `${authentication.message}, but instead of invalid_grant ${cause.message}`
      return { is: 'warning', message, advice: authentication.advice ?? CLIENT_ADVICE }
    }
    case 'unavailable':
      return { is: 'failed', message: `is not a token endpoint: ${faultOf(outcome.cause)}`, advice: ADDRESS_ADVICE }
  }
}

/** Pushes an authorization request that no login will use. @throws the failure, if the endpoint could not be reached */
export async function probePush(config: ProviderConfig): Promise<ProbeResult> {
  const outcome = await requestUrl(config)
  if (outcome.is !== 'ready' && isBare401(outcome)) {
    return { is: 'failed', message: clientRefusal(outcome.cause), advice: BARE_401_ADVICE }
  }
  switch (outcome.is) {
    case 'ready':
      return { is: 'ok', message: 'accepts pushed authorization requests' }
    case 'refused': {
      const { code, cause } = outcome
      if (code === 'invalid_client') return { is: 'failed', message: clientRefusal(cause), advice: CLIENT_ADVICE }
      const message = `refuses the request, so every login fails: ${(cause as Error).message}`
      return { is: 'failed', message, advice: REQUEST_ADVICE }
    }
    case 'unavailable':
      return { is: 'failed', message: `is not an endpoint for pushed requests: ${faultOf(outcome.cause)}` }
  }
}

/** Why the provider refuses this client: the clock, the first key where the second is known, the algorithm, or all of it. */
async function refusedClient(config: ProviderConfig, cause: unknown, aheadSeconds?: number): Promise<ProbeResult> {
  const [first, ...others] = config.clientKeys?.current ?? []
  const general = cause instanceof ProviderRefusal ? CLIENT_ADVICE : BARE_401_ADVICE
  if (config.clientAuth !== 'private_key_jwt' || first === undefined) {
    return { is: 'failed', message: clientRefusal(cause), advice: general }
  }
  const tried = [first, ...others, ...[first, ...others].flatMap(withOtherAlgorithm)]
  for (const key of tried.slice(1)) {
    if (!isClientAccepted(await exchangeNothing({ ...config, clientKeys: new Changeable([key]) }))) continue
    const message = `refuses the key that signs, ${nameOf(first)}, but accepts ${nameOf(key)}`
    const advice = others.includes(key)
      ? 'Move the second key of CLIENT_KEY to the first place, or register the first one.'
      : `Write CLIENT_KEY as a JWK with "alg": "${key.algorithm}".`
    return { is: 'failed', message, advice }
  }
  const message = `${clientRefusal(cause)} with ${[first, ...others].map(nameOf).join(' and with ')}`
  const doubt = clockDoubt(aheadSeconds)
  if (doubt === undefined) return { is: 'failed', message, advice: general }
  const advice = 'What a key signs is good for a minute: synchronize the clocks first, then check again.'
  return { is: 'failed', message: `${message}, but ${doubt}, so the keys may be right`, advice }
}

/** A token endpoint that refuses the code has accepted the client, unless it looks at the code first. */
async function probeAuthentication(config: ProviderConfig): Promise<ProbeResult> {
  const { clientAuth, clientKeys } = config
  if (clientAuth === 'none') {
    return { is: 'ok', message: 'is a token endpoint that knows this client', advice: BLIND_SPOT }
  }
  const keys = clientAuth === 'private_key_jwt' ? (clientKeys?.current ?? []) : []
  const [firstKey, nextKey] = keys
  if (firstKey !== undefined && nextKey !== undefined) {
    if (!isClientAccepted(await exchangeNothing({ ...config, clientKeys: new Changeable([nextKey]) }))) {
      const message = `is a token endpoint that knows the first key of CLIENT_KEY, ${nameOf(firstKey)}, but does not accept the second, ${nameOf(nextKey)}`
      return { is: 'warning', message, advice: 'Register the second key before you move it to the first place.' }
    }
  }
  if (isClientRefused(await exchangeNothing(withWrongCredential(config)))) {
    const how = [clientAuth, ...keys.map(nameOf)].join(', ')
    const message = `is a token endpoint that accepts this client as authenticated (${how})`
    return { is: 'ok', message, advice: BLIND_SPOT }
  }
  const message = `is a token endpoint, but does not refuse a wrong credential either (${clientAuth})`
  const advice = 'It may look at the code first, or this client may be registered as a public one.'
  return { is: 'warning', message, advice }
}

/** “kid 2026-11 (ES256)”. Both are public. */
function nameOf({ id, algorithm }: ClientKey): string {
  return `kid ${id} (${algorithm})`
}

/** The fault of a response that cannot be used. @throws `failure` itself, if there was no response */
function faultOf(failure: unknown): string {
  const { cause } = failure as Error
  if (!(cause instanceof UnusableResponse)) throw failure
  return cause.why
}

function withOtherAlgorithm(key: ClientKey): ClientKey[] {
  const algorithm = OTHER_ALGORITHM[key.algorithm]
  return algorithm === undefined ? [] : [{ ...key, algorithm }]
}

function withWrongCredential(config: ProviderConfig): ProviderConfig {
  const keys = config.clientKeys?.current.map((key) => ({ ...key, key: strangerOf(key) }))
  const clientSecret = new Changeable(randomBytes(16).toString('hex'))
  return { ...config, clientSecret, clientKeys: keys && new Changeable(keys) }
}

/** Another key of the same kind. */
function strangerOf({ algorithm, key }: ClientKey): KeyObject {
  const { namedCurve = 'prime256v1' } = key.asymmetricKeyDetails ?? {}
  if (key.asymmetricKeyType === 'ed25519') return generateKeyPairSync('ed25519').privateKey
  return algorithm.startsWith('ES')
    ? generateKeyPairSync('ec', { namedCurve }).privateKey
    : generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
}
