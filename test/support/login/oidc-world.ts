import { generateKeyPairSync, randomUUID, type KeyObject } from 'node:crypto'
import { SignJWT, UnsecuredJWT, type JWTPayload } from 'jose'
import type { Test } from 'tap'
import type { Arrival } from '../browser/jar-browser.ts'
import { CLIENT_ID, type TestServer } from '../server/test-server.ts'
import { document, metadataServer, type MetadataServer } from './metadata-server.ts'
import { scripted, startLogin, tokens, type TokenEndpoint } from './token-endpoint.ts'
import type { User } from '../user.ts'
import { startWorld, type World } from '../world.ts'

/** The event of a logout token. */
export const EVENTS = { 'http://schemas.openid.net/event/backchannel-logout': {} }

/** A key with which an issuer signs. */
interface IssuerKey {
  readonly kid: string
  readonly alg: string
  readonly privateKey: KeyObject
  readonly jwk: Record<string, unknown>
}

/** Makes a key. */
export function issuerKey(kid: string): IssuerKey {
  const alg = 'ES256'
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { kid, alg, privateKey, jwk: { ...publicKey.export({ format: 'jwk' }), kid, alg, use: 'sig' } }
}

/** Signs a token. @param header members that differ; an undefined one is left out */
export function sign(key: IssuerKey, claims: JWTPayload, header: Record<string, unknown> = {}): Promise<string> {
  const { alg, kid, privateKey } = key
  return new SignJWT(claims).setProtectedHeader({ alg, kid, ...header }).sign(privateKey)
}

/** Signs a token with a shared secret: what a stranger does who takes a public key for one. */
export function signShared(key: IssuerKey, claims: JWTPayload): Promise<string> {
  return new SignJWT(claims)
    .setProtectedHeader({ alg: 'HS256', kid: key.kid })
    .sign(Buffer.from(JSON.stringify(key.jwk)))
}

/** A token without a signature. */
export const unsigned = (claims: JWTPayload): string => new UnsecuredJWT(claims).encode()

/** A token of the past or the future, by so many seconds. */
export const epoch = (seconds = 0): number => Math.floor(Date.now() / 1000) + seconds

/** Claims that differ from the usual ones; an undefined one is left out. */
export type Claims = Record<string, unknown>

/** A scripted provider with OpenID Connect, and a server. */
export interface OidcWorld extends Omit<World<'none', TokenEndpoint>, 'user'> {
  /** Serves the keys. */
  readonly keys: MetadataServer
  key: IssuerKey
  readonly issuer: string
  /** Publishes these keys and no others. */
  readonly publish: (...keys: readonly IssuerKey[]) => void
  /** Makes the ID token of the next token response; undefined leaves it out. By default it is signed with {@link key}. */
  idToken: (claims: JWTPayload) => Promise<string | undefined>
  /** Members of the next token responses. */
  tokens: Record<string, unknown>
  /** The claims of a logout token. */
  readonly logoutClaims: (other?: Claims) => JWTPayload
  readonly logoutToken: (other?: Claims, header?: Record<string, unknown>) => Promise<string>
  /** Posts a logout token as the provider does. */
  readonly postLogout: (token: string, server?: Pick<TestServer, 'url'>) => Promise<Response>
  /** Logs a user in, in a browser of its own. @param claims of the ID token beside those of every one */
  readonly user: (sub: string, claims?: Claims, server?: TestServer) => Promise<User & { readonly arrival: Arrival }>
}

/** The settings of every world. */
export const OIDC = {
  OIDC: 'true',
  DISCOVERY: 'true',
  OAUTH_SCOPE: 'openid trade',
  BACKCHANNEL_LOGOUT: 'true',
  AUTH_STARTS_PER_MINUTE: '0',
} as const

/** Starts a world that ends with the test. */
export async function oidcWorld(
  t: Test,
  options: { settings?: Record<string, string>; redis?: boolean } = {},
): Promise<OidcWorld> {
  const keys = await metadataServer(t)
  const settings = {
    ...OIDC,
    JWKS_URL: `${keys.url}/jwks`,
    END_SESSION_URL: `${keys.url}/end?p=1`,
    ...options.settings,
  }
  const base = await startWorld(t, { ...options, provider: scripted, settings })
  const issuer = base.provider.url
  const nonces = new Map<string, JWTPayload>()
  base.provider.behaviour = async (request, response, form) => {
    const claims = nonces.get(form.get('code') ?? '') ?? { iss: issuer, aud: CLIENT_ID, iat: epoch(), exp: epoch(300) }
    const idToken = await world.idToken(claims)
    await tokens({ access_token: `at-${randomUUID()}`, id_token: idToken, ...world.tokens })(request, response, form)
  }
  const world: OidcWorld = {
    ...base,
    keys,
    issuer,
    key: issuerKey('first'),
    publish(...published) {
      keys.responses['/jwks'] = document({ keys: published.map(({ jwk }) => jwk) })
    },
    idToken: (claims) => sign(world.key, claims),
    tokens: {},
    logoutClaims: (other = {}) =>
      defined({ iss: issuer, aud: CLIENT_ID, iat: epoch(), jti: randomUUID(), events: EVENTS, ...other }),
    logoutToken: (other, header) => sign(world.key, world.logoutClaims(other), { typ: 'logout+jwt', ...header }),
    postLogout: (token, { url } = base.server) => postForm(url, { logout_token: token }),
    async user(sub, claims = {}, server = base.server) {
      const next = base.visitor(undefined, server)
      const login = await startLogin({ ...next, server })
      const code = randomUUID()
      const nonce = login.authorize.searchParams.get('nonce')
      const usual = { iss: issuer, aud: CLIENT_ID, sub, nonce, iat: epoch(), exp: epoch(300) }
      nonces.set(code, defined({ ...usual, ...claims }))
      return Object.assign(next, { arrival: await login.finish({ code }) })
    },
  }
  world.publish(world.key)
  return world
}

/** Posts a form to the back-channel. */
export function postForm(url: string, form: Record<string, string> | URLSearchParams): Promise<Response> {
  return fetch(`${url}/auth/backchannel-logout`, { method: 'POST', body: new URLSearchParams(form) })
}

function defined(claims: Claims): JWTPayload {
  return Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== undefined))
}
