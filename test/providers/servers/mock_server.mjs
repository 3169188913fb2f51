// oauth2-mock-server, which knows no users, clients or secrets: its hooks stand for the consent page and the client check.
import { OAuth2Server } from 'oauth2-mock-server'

const server = new OAuth2Server()
await server.issuer.keys.generate('RS256')
const refreshTokens = new Set()

// There is no page on which a user could deny anything, so a cookie of the test's browser does.
server.service.on('beforeAuthorizeRedirect', ({ url }, request) => {
  if (!request.headers.cookie?.includes('deny=1')) return
  url.searchParams.delete('code')
  url.searchParams.set('error', 'access_denied')
})
server.service.on('beforeResponse', (response, request) => {
  if (request.body.client_id !== 'test-client') {
    response.statusCode = 401
    response.body = { error: 'invalid_client' }
  } else if (request.body.grant_type === 'refresh_token' && !refreshTokens.delete(request.body.refresh_token)) {
    response.statusCode = 400
    response.body = { error: 'invalid_grant' }
  } else {
    response.body.refresh_token = crypto.randomUUID()
    refreshTokens.add(response.body.refresh_token)
  }
})
await server.start(Number(process.env.PORT), '127.0.0.1')
