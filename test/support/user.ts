import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import type { Test } from 'tap'
import { BrowserSocket } from './browser/browser-socket.ts'
import type { Arrival, JarBrowser } from './browser/jar-browser.ts'
import { startLogin, type StartedLogin } from './login/token-endpoint.ts'
import { nextEvent } from './time/until.ts'

/** A path of the API. */
export const ACCOUNTS = '/api/trading/v1/options/accounts'
/** A path of the API that takes orders. */
export const TRANSFER = '/api/payment-agents/v1/transfer'
/** A path of public sockets, and one of trading sockets. */
export const PUBLIC = '/ws/public'
export const TRADING = '/ws/trading/VRTC100'

/** A response with its whole body. */
export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly bytes: Buffer
  readonly text: string
  /** The parsed body, which usually is a problem document. */
  readonly json: Record<string, unknown>
}

/** The headers and body of a call. No other headers are sent except Host and framing. */
export interface CallInit {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer | Readable
  /** Another instance, as behind a balancer. */
  readonly at?: { readonly port: number } | undefined
}

/** An order: a transfer of one unit, unless it has another path or body. */
interface OrderInit extends CallInit {
  /** Its Idempotency-Key, if it has one. */
  readonly key?: string
  readonly path?: string
}

/** How a page opens a socket. */
export interface SocketOptions extends Pick<CallInit, 'headers' | 'at'> {
  /** null: no Origin is sent. */
  readonly origin?: string | null
}

/** Somebody with a browser, and what the pages of the server do for them. */
export interface User {
  readonly browser: JarBrowser
  /** The Cookie header of the browser. */
  readonly cookie: string
  /** A call as a script of the frontend makes it, with the session and X-CSRF. */
  readonly call: (method: string, path: string, init?: CallInit) => Promise<Answer>
  readonly order: (init?: OrderInit) => Promise<Answer>
  /** Opens a socket as a page does. It ends with the test. */
  readonly socket: (path: string, options?: SocketOptions) => BrowserSocket
  /** Logs in: as the provider's usual user unless a name is given. @returns where that ends */
  readonly logIn: (name?: string) => Promise<Arrival>
  /** Starts a login, in a new tab. @param path of the server, or an address of another instance */
  readonly startLogin: (path?: string) => Promise<StartedLogin>
  /** @param query such as `?everywhere=true` */
  readonly logOut: (query?: string) => Promise<Response>
}

/** The server that a user visits, and the provider where they log in. */
export interface Home {
  readonly url: string
  readonly port: number
  readonly logIn: (browser: JarBrowser, publicUrl: string, name?: string) => Promise<Arrival>
}

/** The user of a browser. */
export function userOf(t: Test, browser: JarBrowser, { url, port, logIn }: Home): User {
  const page = new URL(url)
  const cookie = (): string => browser.cookieHeader(page, page)
  const call: User['call'] = (method, path, { at, ...init } = {}) => {
    const headers = { cookie: cookie(), 'x-csrf': '1', ...init.headers }
    return sendTo(at?.port ?? port, method, path, { ...init, headers })
  }
  return {
    browser,
    get cookie() {
      return cookie()
    },
    call,
    order({ key, path = TRANSFER, body = '{"amount":1}', headers, ...init } = {}) {
      const own = key === undefined ? {} : { 'idempotency-key': key }
      return call('POST', path, { ...init, body, headers: { ...own, ...headers } })
    },
    socket(path, { origin = url, headers = {}, at } = {}) {
      const own = cookie()
      const socket = new BrowserSocket(`ws://127.0.0.1:${at?.port ?? port}${path}`, {
        ...(origin !== null && { origin }),
        ...(own !== '' && { cookie: own }),
        ...headers,
      })
      t.teardown(() => socket.socket.terminate())
      return socket
    },
    logIn: (name) => logIn(browser, url, name),
    startLogin: (path) => startLogin({ browser, server: { url } }, path),
    logOut: (query = '') => logOut(browser, url, query),
  }
}

/** Logs a browser out as a page of the server does. */
export function logOut(browser: JarBrowser, url: string, query = ''): Promise<Response> {
  browser.page = new URL(url)
  return browser.fetch(`/auth/logout${query}`, { method: 'POST', headers: { 'x-csrf': '1' } })
}

/** One request on a connection of its own. */
export async function sendTo(
  port: number,
  method: string,
  path: string,
  init: Omit<CallInit, 'at'> = {},
): Promise<Answer> {
  const { body, headers = {} } = init
  const outgoing = httpRequest({ port, host: '127.0.0.1', method, path, headers, agent: false })
  const isBuffer = typeof body === 'string' || Buffer.isBuffer(body)
  if (isBuffer && headers['transfer-encoding'] === undefined) {
    outgoing.setHeader('content-length', Buffer.byteLength(body))
  }
  const answered = nextEvent(outgoing, 'response')
  // The response may come before the whole body is sent. An error of the rest does not matter then.
  outgoing.on('error', () => undefined)
  if (body === undefined || isBuffer) outgoing.end(body)
  else body.pipe(outgoing)
  const [response] = (await answered) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  const bytes = Buffer.concat(chunks)
  const text = bytes.toString()
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    bytes,
    text,
    get json() {
      return JSON.parse(text) as Record<string, unknown>
    },
  }
}
