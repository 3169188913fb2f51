import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Test } from 'tap'
import { JarBrowser, type Arrival } from '../browser/jar-browser.ts'
import { answerJson, ScriptedUpstream } from '../upstream/scripted-upstream.ts'
import { loginWorld, startLogin, tokens, type LoginWorld, type StartedLogin } from './token-endpoint.ts'
import { SECRETS, type TestServer } from '../server/world.ts'

/** What the identity endpoint does with a request. */
type Answer = (request: IncomingMessage, response: ServerResponse) => unknown

/** A server that asks upstream whose a session is. */
export interface IdentityWorld extends LoginWorld {
  readonly upstream: ScriptedUpstream
  /** Replaces the answer of the identity endpoint, which names the user of the access token. */
  answer: Answer
  /** Requests that the identity endpoint got. */
  readonly asked: IncomingMessage[]
  /** Starts a login of a user in a browser of its own. @param server another instance */
  start(user: string, server?: TestServer): Promise<{ browser: JarBrowser; login: StartedLogin }>
  /** Logs a user in. */
  logIn(user: string, server?: TestServer): Promise<{ browser: JarBrowser; arrival: Arrival }>
}

/** The secret of the operators of every world. */
export const OPS_TOKEN = 'the-token-of-the-operators-of-a-test'

/** The settings with which sessions have a subject. */
export const IDENTITY = {
  IDENTITY_PATH: '/account/v1/me',
  IDENTITY_POINTER: '/data/id',
  OPS_TOKEN,
  AUTH_STARTS_PER_MINUTE: '0',
} as const

/** The settings of another process with the sessions of a world with Redis. */
export function settingsOf({ settings, redis }: IdentityWorld): Record<string, string> {
  const own = { CLIENT_ID: 'test-client', SESSION_SECRETS: SECRETS, REDIS_URL: redis?.url ?? '' }
  return { ...settings, ...IDENTITY, ...own }
}

/** Starts a world that ends with the test. */
export async function identityWorld(
  t: Test,
  options: { settings?: Record<string, string>; redis?: boolean } = {},
): Promise<IdentityWorld> {
  const upstream = await ScriptedUpstream.start(t)
  const settings = {
    API_URL: `http://${upstream.host}`,
    WS_URL: `ws://${upstream.host}`,
    ...IDENTITY,
    ...options.settings,
  }
  const world = await loginWorld(t, { ...options, settings })
  // The code names the user, and so does the token.
  world.endpoint.behaviour = (request, response, form) =>
    tokens({ access_token: `of-${form.get('code')}` })(request, response, form)
  const asked: IncomingMessage[] = []
  upstream.onRest = (request, response) => {
    if (request.url !== settings.IDENTITY_PATH) return answerJson(response, 200, { data: [] })
    asked.push(request)
    void whole.answer(request, response)
  }
  const start: IdentityWorld['start'] = async (user, server = world.server) => {
    const browser = new JarBrowser()
    const login = await startLogin({ browser, server })
    return { browser, login: { ...login, finish: () => login.finish({ code: user }) } }
  }
  const whole: IdentityWorld = {
    ...world,
    upstream,
    asked,
    answer: (request, response) => answerJson(response, 200, { data: { id: userOf(request) } }),
    start,
    async logIn(user, server) {
      const { browser, login } = await start(user, server)
      return { browser, arrival: await login.finish() }
    },
  }
  return whole
}

/** Logs a browser out of all its user's sessions. */
export function logOutEverywhere(browser: JarBrowser, { url }: Pick<TestServer, 'url'>): Promise<Response> {
  browser.page = new URL(url)
  return browser.fetch('/auth/logout?everywhere=true', { method: 'POST', headers: { 'x-csrf': '1' } })
}

/** A request of an operator. */
export function operate(
  { opsUrl }: Pick<TestServer, 'opsUrl'>,
  method: 'GET' | 'DELETE',
  query: Record<string, string>,
  token: string = OPS_TOKEN,
): Promise<Response> {
  const headers = { authorization: `Bearer ${token}` }
  return fetch(`${opsUrl}/sessions?${new URLSearchParams(query).toString()}`, { method, headers })
}

function userOf({ headers }: IncomingMessage): string {
  return headers.authorization?.replace('Bearer of-', '') ?? ''
}
