import './quiet-provider.ts'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { Provider } from 'oidc-provider'
import type { Certificate } from './certificate.ts'
import { closeNow, listen } from './listening.ts'
import { InteractionPages } from './provider/interaction.ts'
import { ProviderMemory } from './provider/memory.ts'
import { homeUrlOf, oidcSettings, type ClientRegistration } from './provider/settings.ts'
import { Users } from './provider/users.ts'

/** A running OAuth 2.0 provider (docs/upstream.md, The provider). The user `demo@example.test` exists from the start. */
export interface SandboxProvider {
  /** The issuer, without a trailing slash. */
  url: string
  /** All issued access tokens, refresh tokens and authorization codes. */
  issued: Set<string>
  /** All PKCE verifiers that were received with a code. */
  verifiers: Set<string>
  /** The query parameters of all authorization requests, newest last; the last value of a repeated parameter. */
  authorizations: ReadonlyArray<Record<string, string>>
  /** The id of a valid token's user, which is not that of a trading account; undefined for an invalid token. */
  isActive(accessToken: string): Promise<{ accountId: string } | undefined>
  /** The grant of a token or a code, which is the login that it comes from; also of one that was used or revoked. */
  grantOf(secret: string): string | undefined
  /** How many tokens of a grant can still be used. */
  usableTokens(grant: string): number
  /** Revokes all tokens, codes and grants. */
  revokeAll(): Promise<void>
  /** The number of POST requests to the token endpoint, including failed ones. */
  tokenRequests(): number
  /** Stops the provider and closes open connections. */
  close(): Promise<void>
}

export interface ProviderOptions {
  /** Any free port by default. */
  port?: number
  /** The host in its URL; 127.0.0.1 by default. */
  host?: string
  /** The address to listen on, if it differs from the host, for example in a container. */
  bind?: string
  /** Its certificate, if it speaks TLS. */
  tls?: Certificate | undefined
  /** The id of the only application. */
  clientId: string
  /** How that client is registered, if it is not a public one (RFC 7591 §2), for example `client_secret`. */
  client?: ClientRegistration
  /** If true, only pushed authorization requests are accepted (RFC 9126). */
  requirePushed?: boolean
  redirectUris: string[]
  accessTokenSeconds?: number
  /** If true, every login also yields a refresh token, which is rotated with every use. */
  refreshTokens?: boolean
  /** Settings of oidc-provider that replace those of the sandbox. */
  library?: Readonly<Record<string, unknown>>
  /** Is told what the provider does. */
  watch?: ProviderWatch
}

/** Is told what the provider does, at the moment when it does it. */
export interface ProviderWatch {
  /** An authorization request has come, with these parameters. */
  authorization(params: Readonly<Record<string, string>>): void
  /** A request to the token endpoint that named a grant has been granted or refused. */
  token(params: Readonly<Record<string, string | undefined>>, isGranted: boolean): void
  /** A user has logged out, and the client has confirmed a back-channel logout. @param grant their last login */
  loggedOut?(grant: string | undefined): void
}

/** Starts the provider. @throws the error of the server, such as EADDRINUSE */
export async function startProvider(options: ProviderOptions): Promise<SandboxProvider> {
  const { port = 0, host = '127.0.0.1', tls, clientId, redirectUris } = options
  const server = tls === undefined ? createServer() : createTlsServer(tls)
  const actualPort = await listen(server, port, options.bind ?? host)
  const url = `${tls === undefined ? 'http' : 'https'}://${host}:${actualPort}`
  const memory = new ProviderMemory()
  const users = new Users()
  const settings = oidcSettings({
    clientId,
    ...(options.client && { client: options.client }),
    ...(options.requirePushed !== undefined && { requirePushed: options.requirePushed }),
    redirectUris,
    accessTokenSeconds: options.accessTokenSeconds ?? 3600,
    refreshTokens: options.refreshTokens ?? false,
    cookiePrefix: `sandbox_provider_${actualPort}`,
    memory,
    users,
  })
  const provider = new Provider(url, { ...settings, ...options.library })
  const traffic = new Traffic(options.watch)
  const verifiers = new Set<string>()
  for (const event of ['grant.success', 'grant.error'] as const) {
    provider.on(event, ({ oidc }) => {
      if (oidc.params?.['code_verifier'] !== undefined) verifiers.add(oidc.params['code_verifier'])
      options.watch?.token(oidc.params ?? {}, event === 'grant.success')
    })
  }
  const pages = new InteractionPages(provider, users, homeUrlOf(redirectUris))
  provider.on('backchannel.success', ({ oidc }) => options.watch?.loggedOut?.(oidc.session.grantIdFor(clientId)))
  server.on('request', requestListener(provider, pages, traffic))
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
    grantOf: (secret) => memory.grants.get(secret),
    usableTokens: (grant) => memory.usable(grant),
    async revokeAll() {
      memory.revokeAll()
    },
    close: () => closeNow(server),
  }
}

/** Records requests for tests. */
class Traffic {
  readonly authorizations: Record<string, string>[] = []
  tokenRequests = 0
  readonly #watch: ProviderWatch | undefined

  constructor(watch: ProviderWatch | undefined) {
    this.#watch = watch
  }

  record(method: string | undefined, { pathname, searchParams }: URL): void {
    if (pathname === '/oauth2/auth') {
      const params = Object.fromEntries(searchParams)
      this.authorizations.push(params)
      this.#watch?.authorization(params)
    }
    if (pathname === '/oauth2/token' && method === 'POST') this.tokenRequests += 1
  }
}

type Listener = (request: IncomingMessage, response: ServerResponse) => void

function requestListener(provider: Provider, pages: InteractionPages, traffic: Traffic): Listener {
  const files: Readonly<Record<string, { type: string; content: Buffer }>> = {
    '/sandbox.css': { type: 'text/css', content: readFileSync(new URL('provider/style.css', import.meta.url)) },
    '/sandbox.svg': { type: 'image/svg+xml', content: readFileSync(new URL('provider/favicon.svg', import.meta.url)) },
  }
  const library = provider.callback()

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // The host is a placeholder, as only the path and the query matter.
    const url = new URL(`http://sandbox${request.url ?? '/'}`)
    traffic.record(request.method, url)
    // There is no form-action, as some browsers would apply it to all redirects, including those to the application.
    response.setHeader(
      'content-security-policy',
      "default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'none'",
    )
    const file = files[url.pathname]
    if (file !== undefined) response.setHeader('content-type', file.type).end(file.content)
    else if (url.pathname.startsWith('/interaction/')) await pages.handle(request, response)
    else await library(request, response)
  }

  return (request, response) => {
    respond(request, response).catch(() => {
      if (response.headersSent) response.destroy()
      else response.writeHead(500).end()
    })
  }
}
