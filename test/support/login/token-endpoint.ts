import { createHmac, randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import type { Arrival, JarBrowser } from '../browser/jar-browser.ts'
import { keepOutOfLogs } from '../telemetry/log-scan.ts'
import { httpServer } from '../server/http-server.ts'
import type { StartProvider } from '../parts.ts'
import type { TestServer } from '../server/test-server.ts'

/** What a token endpoint does with a request. */
export type Behaviour = (request: IncomingMessage, response: ServerResponse, form: URLSearchParams) => unknown

/** A provider that is only a scripted token endpoint. Its login page has no form. */
export interface TokenEndpoint {
  readonly url: string
  /** Forms that were posted to the token endpoint, and its headers. */
  readonly forms: URLSearchParams[]
  readonly headers: IncomingMessage['headers'][]
  /** Tokens that were revoked. */
  readonly revoked: string[]
  behaviour: Behaviour
  /** What it does with a revocation: by default it revokes. */
  onRevocation: Behaviour
  /** The login page, which is the response to every GET, and its headers. */
  page: string
  pageHeaders: Readonly<Record<string, string>>
}

/** The code of a login without a name. */
const CODE = 'the-authorization-code'

/** A JSON response. */
export function json(body: unknown, status = 200, headers: Record<string, string> = {}): Behaviour {
  return (_request, response) =>
    response
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(typeof body === 'string' ? body : JSON.stringify(body))
}

/** A response that is not JSON. */
export function html(status = 200): Behaviour {
  return (_request, response) =>
    response.writeHead(status, { 'content-type': 'text/html' }).end('<h1>Something else</h1>')
}

/** A token response (RFC 6749 §5.1) with other fields. */
export function tokens(other: Record<string, unknown> = {}): Behaviour {
  return json({ access_token: 'the-access-token', expires_in: 3600, token_type: 'Bearer', ...other })
}

/** A response that waits for `release`. `asked` resolves once the request has arrived. */
export function held(answer: Behaviour = tokens()): {
  readonly behaviour: Behaviour
  readonly asked: Promise<void>
  readonly release: () => void
} {
  const asked = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  const behaviour: Behaviour = async (request, response, form) => {
    asked.resolve()
    await gate.promise
    await answer(request, response, form)
  }
  return { behaviour, asked: asked.promise, release: () => gate.resolve() }
}

/** Starts one that ends with the test. By default it returns tokens. */
export async function tokenEndpoint(t: Test): Promise<TokenEndpoint> {
  const forms: URLSearchParams[] = []
  const headers: IncomingMessage['headers'][] = []
  const revoked: string[] = []
  const verifiers = new Set<string>()
  keepOutOfLogs(verifiers)
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.method !== 'POST') return void response.writeHead(200, endpoint.pageHeaders).end(endpoint.page)
    const form = new URLSearchParams(await text(request))
    if (request.url === '/oauth2/revoke') {
      return void (await endpoint.onRevocation(request, response, form))
    }
    forms.push(form)
    verifiers.add(form.get('code_verifier') ?? '')
    headers.push(request.headers)
    await endpoint.behaviour(request, response, form)
  }
  const endpoint: TokenEndpoint = {
    url: await httpServer(t, (request, response) => void answer(request, response)),
    forms,
    headers,
    revoked,
    behaviour: tokens(),
    onRevocation(_request, response, revocation) {
      revoked.push(revocation.get('token') ?? '')
      response.end()
    },
    page: '<title>Log in</title>',
    pageHeaders: {},
  }
  return endpoint
}

/** A login that has reached the provider's page. */
export interface StartedLogin {
  readonly state: string
  /** The address of the provider's page. */
  readonly authorize: URL
  readonly arrival: Arrival
  /** The provider sends the browser back; single parameters of the callback may be replaced. */
  readonly finish: (parameters?: Record<string, string>) => Promise<Arrival>
}

/** A browser, and the server that it logs in to. */
interface Visit {
  readonly browser: JarBrowser
  readonly server: Pick<TestServer, 'url'>
}

/** Starts a login, in a new tab. @param path of this server, or of another instance when it is an address */
export async function startLogin({ browser, server }: Visit, path = '/auth/login'): Promise<StartedLogin> {
  const { url } = server
  const arrival = await browser.navigate(new URL(path, url).href, { from: 'address bar' })
  const authorize = arrival.url
  const state = authorize.searchParams.get('state') ?? ''
  const finish: StartedLogin['finish'] = (parameters = { code: CODE }) => {
    const query = new URLSearchParams({ ...parameters, state })
    return browser.navigate(`${url}/auth/callback?${query.toString()}`, { from: authorize })
  }
  return { state, authorize, arrival, finish }
}

/** Such an endpoint as the provider of a world. The name of a user is the code, and so it names the token. */
export const scripted: StartProvider<TokenEndpoint> = async (t) => {
  const provider = await tokenEndpoint(t)
  provider.behaviour = (request, response, form) => {
    const code = form.get('code')
    tokens(code === null || code === CODE ? {} : { access_token: `of-${code}` })(request, response, form)
  }
  const settings = { AUTH_URL: provider.url, REVOCATION_URL: `${provider.url}/oauth2/revoke` }
  return {
    provider,
    settings,
    async logIn(browser, url, code) {
      const login = await startLogin({ browser, server: { url } })
      return login.finish(code === undefined ? undefined : { code })
    },
  }
}

/** Logs in. */
export async function logInThere(world: Visit): Promise<Arrival> {
  return (await startLogin(world)).finish()
}

/** The session as GET /auth/session reports it to a page. */
export async function sessionState(
  browser: JarBrowser,
  url: string,
): Promise<Record<string, unknown> & { authenticated: boolean }> {
  const tab = browser.clone()
  tab.page = new URL(url)
  const answer = await tab.fetch('/auth/session')
  return (await answer.json()) as Record<string, unknown> & { authenticated: boolean }
}

/** Whether GET /auth/session reports a login. */
export async function isLoggedIn(browser: JarBrowser, url: string): Promise<boolean> {
  return (await sessionState(browser, url)).authenticated
}

/** A login cookie without a MAC, of no existing login. */
export function unsignedLoginCookie(): string {
  const secret = randomBytes(24).toString('base64url')
  const state = createHmac('sha256', secret).update('state').digest('base64url')
  return `__Host-login-${state.slice(0, 8)}=${secret}.mwr2db0i`
}
