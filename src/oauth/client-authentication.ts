import type { webcrypto } from 'node:crypto'
import * as client from 'openid-client'
import { derived } from '../config/changing.ts'
import type { ClientKey } from '../config/client-key.ts'
import type { ProviderConfig } from '../config/provider.ts'
import { storeAheadSeconds } from '../time/store-time.ts'

/**
 * How requests prove that they are this client's, as CLIENT_AUTH says: each with the credential that is the present one when it
 * is sent. @throws Error if the credential is missing
 */
export function clientAuthentication(config: ProviderConfig): client.ClientAuth {
  const { clientAuth, clientSecret, clientKeys } = config
  switch (clientAuth) {
    case 'none':
      return client.None()
    case 'client_secret_post':
      return latest(derived(required(clientSecret), (secret) => client.ClientSecretPost(secret)))
    case 'client_secret_basic':
      return latest(derived(required(clientSecret), clientSecretBasic))
    case 'private_key_jwt':
      return latest(derived(required(clientKeys), ([first]) => privateKeyJwt(required(first))))
  }
}

function latest(authentication: () => client.ClientAuth): client.ClientAuth {
  return (...request) => authentication()(...request)
}

function privateKeyJwt(key: ClientKey): client.ClientAuth {
  // openid-client would always name EdDSA Ed25519.
  const nameAlgorithm: client.ModifyAssertionFunction = (header) => void (header['alg'] = key.algorithm)
  const authenticate = client.PrivateKeyJwt(
    { key: signingKey(key), kid: key.id },
    { [client.modifyAssertion]: nameAlgorithm },
  )
  // The clock of this machine may be wrong.
  return (server, metadata, ...request) =>
    authenticate(server, { ...metadata, [client.clockSkew]: storeAheadSeconds() }, ...request)
}

/**
 * HTTP Basic (RFC 6749 §2.3.1). openid-client's own also percent-encodes `-`, `_` and `.`, which form encoding leaves as
 * they are. Several servers do not decode the name and the password, and would know no client with a UUID as its id.
 */
function clientSecretBasic(secret: string): client.ClientAuth {
  return (_server, { client_id: id }, _body, headers) => {
    const credentials = `${formEncoded(id)}:${formEncoded(secret)}`
    headers.set('authorization', `Basic ${Buffer.from(credentials).toString('base64')}`)
  }
}

function formEncoded(value: string): string {
  return new URLSearchParams({ '': value }).toString().slice(1)
}

/** The key as Web Crypto takes it. It cannot be exported again. */
function signingKey({ algorithm, key }: ClientKey): webcrypto.CryptoKey {
  return key.toCryptoKey(webAlgorithm(algorithm), false, ['sign'])
}

/** The parameters of Web Crypto for a signature algorithm of JOSE (RFC 7518 §3.1). */
function webAlgorithm(algorithm: string): webcrypto.RsaHashedImportParams | webcrypto.EcKeyImportParams | string {
  const bits = algorithm.slice(2)
  switch (algorithm.slice(0, 2)) {
    case 'RS':
      return { name: 'RSASSA-PKCS1-v1_5', hash: `SHA-${bits}` }
    case 'PS':
      return { name: 'RSA-PSS', hash: `SHA-${bits}` }
    case 'ES':
      return { name: 'ECDSA', namedCurve: bits === '512' ? 'P-521' : `P-${bits}` }
    default:
      return 'Ed25519'
  }
}

function required<Value>(credential: Value | undefined): Value {
  if (credential === undefined) throw new Error('the settings name no credential for CLIENT_AUTH')
  return credential
}
