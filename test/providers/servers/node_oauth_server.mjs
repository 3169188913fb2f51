// @node-oauth/oauth2-server with a model in memory, as its documentation builds one: client_secret_post, PKCE, rotation.
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import OAuth2Server from '@node-oauth/oauth2-server'

const CLIENT = {
  id: 'test-client',
  secret: 'node-oauth-secret',
  grants: ['authorization_code', 'refresh_token'],
  redirectUris: [process.env.REDIRECT_URI],
}
const codes = new Map()
const tokens = new Map()

const model = {
  async getClient(id, secret) {
    return id === CLIENT.id && (secret === null || secret === undefined || secret === CLIENT.secret) ? CLIENT : null
  },
  async saveAuthorizationCode(code, client, user) {
    codes.set(code.authorizationCode, { ...code, client, user })
    return { ...code, client, user }
  },
  getAuthorizationCode: async (code) => codes.get(code),
  revokeAuthorizationCode: async ({ authorizationCode }) => codes.delete(authorizationCode),
  async saveToken(token, client, user) {
    const saved = { ...token, client, user }
    tokens.set(token.refreshToken, saved)
    return saved
  },
  getRefreshToken: async (token) => tokens.get(token),
  revokeToken: async ({ refreshToken }) => tokens.delete(refreshToken),
  getAccessToken: async (token) => [...tokens.values()].find(({ accessToken }) => accessToken === token),
  validateScope: async (_user, _client, scope) => scope,
}
const oauth = new OAuth2Server({ model })

async function respond(incoming, outgoing) {
  const { pathname, searchParams } = new URL(incoming.url, 'http://localhost')
  const body = Object.fromEntries(new URLSearchParams(await text(incoming)))
  const { method, headers } = incoming
  const request = new OAuth2Server.Request({ method, headers, query: Object.fromEntries(searchParams), body })
  const response = new OAuth2Server.Response()
  try {
    if (pathname === '/authorize' && method === 'GET') {
      return outgoing.setHeader('content-type', 'text/html').end('<form method="post"></form>')
    }
    if (pathname === '/authorize') {
      request.query.allowed = body.action === 'allow' ? 'true' : 'false'
      await oauth.authorize(request, response, { authenticateHandler: { handle: () => ({ id: 'demo' }) } })
    } else if (pathname === '/token') await oauth.token(request, response)
    else return outgoing.writeHead(404).end()
  } catch (error) {
    if (response.status === 200) response.status = error.code ?? 500
    response.body = { error: error.name, error_description: error.message }
  }
  outgoing.writeHead(response.status, response.headers)
  outgoing.end(Object.keys(response.body ?? {}).length === 0 ? undefined : JSON.stringify(response.body))
}

createServer((incoming, outgoing) => void respond(incoming, outgoing)).listen(Number(process.env.PORT), '127.0.0.1')
