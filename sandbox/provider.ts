import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Provider } from 'oidc-provider'
import { closeNow, listen } from './listening.ts'
import { InteractionPages } from './provider/interaction.ts'
import { ProviderMemory } from './provider/memory.ts'
import { oidcSettings } from './provider/settings.ts'
import { Users } from './provider/users.ts'

/** A running OAuth 2.0 provider (docs/upstream.md, The provider), real but for its users: `demo@example.test` is one from the start. */
export interface SandboxProvider {
  /** The issuer, without a trailing slash. */
  url: string
  /** Every secret ever handed out: access tokens, refresh tokens, authorization codes. */
  issued: Set<string>
  /** Every PKCE verifier that came with a code. */
  verifiers: Set<string>
  /** The query parameters of every authorization request, newest last; of a repeated one the last value. */
  authorizations: ReadonlyArray<Record<string, string>>
  /** Whose the token is, while it is valid. The id is the user's, not that of a trading account. */
  isActive(accessToken: string): Promise<{ accountId: string } | undefined>
  /** Ends every token, code and grant at once. */
  revokeAll(): Promise<void>
  /** How many POSTs the token endpoint has seen, failed ones included. */
  tokenRequests(): number
  /** Stops at once, open connections included. */
  close(): Promise<void>
}

export interface ProviderOptions {
  /** 0, the default, takes any free port. */
  port?: number
  /** The host of its own address. */
  host?: string
  /** The address it listens on, where that is another one; in a container, for instance. */
  bind?: string
  /** The one registered application: a public client. */
  clientId: string
  redirectUris: string[]
  accessTokenSeconds?: number
  /** With true every log-in also yields a refresh token, which changes at every use. */
  refreshTokens?: boolean
}

/**
 * Starts the provider.
 * @throws the listening error as it came, EADDRINUSE for a taken port
 */
export async function startProvider(options: ProviderOptions): Promise<SandboxProvider> {
  const { port = 0, host = '127.0.0.1', clientId, redirectUris } = options
  const server = createServer()
  const actualPort = await listen(server, port, options.bind ?? host)
  const url = `http://${host}:${actualPort}`
  const memory = new ProviderMemory()
  const users = new Users()
  const settings = oidcSettings({
    clientId,
    redirectUris,
    accessTokenSeconds: options.accessTokenSeconds ?? 3600,
    refreshTokens: options.refreshTokens ?? false,
    cookiePrefix: `sandbox_provider_${actualPort}`,
    memory,
    users,
  })
  const provider = new Provider(url, settings)
  const traffic = new Traffic()
  const verifiers = new Set<string>()
  for (const event of ['grant.success', 'grant.error'] as const) {
    provider.on(event, ({ oidc }) => {
      if (oidc.params?.['code_verifier'] !== undefined) verifiers.add(oidc.params['code_verifier'])
    })
  }
  server.on('request', requestListener(provider, new InteractionPages(provider, users), traffic))
  return {
    url,
    issued: memory.issued,
    verifiers,
    authorizations: traffic.authorizations,
    tokenRequests: () => traffic.tokenRequests,
    async isActive(accessToken) {
      const token = await provider.AccessToken.find(accessToken)
      return token && { accountId: token.accountId }
    },
    async revokeAll() {
      memory.revokeAll()
    },
    close: () => closeNow(server),
  }
}

/** What tests want to know about the requests that came in. */
class Traffic {
  readonly authorizations: Record<string, string>[] = []
  tokenRequests = 0

  note(method: string | undefined, { pathname, searchParams }: URL): void {
    if (pathname === '/oauth2/auth') this.authorizations.push(Object.fromEntries(searchParams))
    if (pathname === '/oauth2/token' && method === 'POST') this.tokenRequests += 1
  }
}

type Listener = (request: IncomingMessage, response: ServerResponse) => void

function requestListener(provider: Provider, pages: InteractionPages, traffic: Traffic): Listener {
  const style = readFileSync(new URL('provider/style.css', import.meta.url))
  const library = provider.callback()

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // Only the path is wanted; the base makes the URL complete.
    const url = new URL(`http://sandbox${request.url ?? '/'}`)
    traffic.note(request.method, url)
    // No form-action: browsers apply it to the whole chain of redirects, back to the application and further.
    response.setHeader(
      'content-security-policy',
      "default-src 'none'; style-src 'self'; frame-ancestors 'none'",
    )
    if (url.pathname === '/sandbox.css') response.setHeader('content-type', 'text/css').end(style)
    else if (url.pathname.startsWith('/interaction/')) await pages.handle(request, response)
    else await library(request, response)
  }

  return (request, response) => {
    answer(request, response).catch(() => {
      if (response.headersSent) response.destroy()
      else response.writeHead(500).end()
    })
  }
}
