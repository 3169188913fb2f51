import * as client from 'openid-client'

/** The login of both npm stacks. */
const { PUBLIC_URL = '', AUTH_URL = '', CLIENT_ID = '' } = process.env

const server = {
  issuer: AUTH_URL,
  authorization_endpoint: `${AUTH_URL}/oauth2/auth`,
  token_endpoint: `${AUTH_URL}/oauth2/token`,
}
const configuration = new client.Configuration(server, CLIENT_ID, undefined, client.None())
client.allowInsecureRequests(configuration)

/** @returns the authorize URL, and the values to keep in the session until the callback */
export async function startLogin() {
  const pending = { state: client.randomState(), verifier: client.randomPKCECodeVerifier() }
  const url = client.buildAuthorizationUrl(configuration, {
    redirect_uri: `${PUBLIC_URL}/auth/callback`,
    scope: 'trade account_manage',
    state: pending.state,
    code_challenge: await client.calculatePKCECodeChallenge(pending.verifier),
    code_challenge_method: 'S256',
  })
  return { pending, location: url.href }
}

/** @returns the access token */
export async function finishLogin(requestUrl, { state, verifier }) {
  const url = new URL(requestUrl, PUBLIC_URL)
  const tokens = await client.authorizationCodeGrant(configuration, url, {
    pkceCodeVerifier: verifier,
    expectedState: state,
  })
  return tokens.access_token
}
