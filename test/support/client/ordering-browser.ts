import type { ServerResponse } from 'node:http'
import type { Test } from 'tap'
import { createClient, once, type Client } from '../../../client/dist/client.js'
import { clientOf } from './client-of.ts'
import { failure } from './page-client.ts'
import { PROBLEM, problemBody } from './own-problem.ts'

const TRANSFER = '/payment-agents/v1/transfer'
export const REMEMBERED = { remember: 'transfer' }
export const ORDER = { amount: 1234.56, to: 'CR100' }

/**
 * What happens to a call: its response is lost, or it gets this problem, or without a code this response of the trading service;
 * or a proxy in front of the server responds with this status.
 */
type Event = 'cut' | readonly ['proxy', status: number] | Response
type Response = readonly [status: number, code: string]

const NO_SESSION: Response = [401, 'login_required']
const NO_CONTENT: Response = [204, '']

/** The storage of a tab. */
export class TabStorage {
  readonly items: Map<string, string>

  constructor(items: ReadonlyMap<string, string> = new Map()) {
    this.items = new Map(items)
  }

  getItem(name: string): string | null {
    return this.items.get(name) ?? null
  }

  setItem(name: string, value: string): void {
    this.items.set(name, value)
  }

  removeItem(name: string): void {
    this.items.delete(name)
  }
}

interface SessionIs {
  readonly session?: string
  readonly subject?: string
}

/** A server, a browser whose session changes when a test says so, and its tabs. */
export class OrderingBrowser {
  session: SessionIs | 'none' | 'down' = { session: 'first', subject: 'user-1' }
  script: Event[] = []
  /** The keys that have arrived, and the session in which they were sent. */
  readonly sent: [key: string, session: unknown][] = []
  /** Called when the server has told the session. */
  onSession: () => void = () => undefined
  #client: Client | undefined
  tab = new TabStorage()
  /** Called when a call arrives whose response will be lost. */
  onCut: () => void = () => undefined

  get keys(): string[] {
    return this.sent.map(([key]) => key)
  }

  async start(t: Test): Promise<this> {
    this.#client = await clientOf(t, ({ method, url, headers }, response) => {
      if (url === '/login') return void response.end('<form>')
      if (url === '/auth/session') {
        if (this.session === 'down') return void response.writeHead(503).end()
        if (method === 'POST') return this.#respond(response, ...(this.session === 'none' ? NO_SESSION : NO_CONTENT))
        const limits = { authenticated: true, now: 1, expires_at: 3601, idle_expires_at: 601, scope: 'trade' }
        const body = this.session === 'none' ? { authenticated: false, now: 1 } : { ...limits, ...this.session }
        response.end(JSON.stringify(body))
        return this.onSession()
      }
      this.sent.push([String(headers['idempotency-key']), Object(this.session).session])
      const event = this.script.shift() ?? ([200, ''] as const)
      if (event === 'cut') {
        this.onCut()
        // Another call may get its response first.
        return void setTimeout(() => response.destroy(), 50)
      }
      if (event[0] === 'proxy') return void response.writeHead(event[1], { location: '/login' }).end('<h1>proxy</h1>')
      this.#respond(response, ...event)
    })
    Object.defineProperty(globalThis, 'sessionStorage', { configurable: true, get: () => this.tab })
    t.teardown(() => Reflect.deleteProperty(globalThis, 'sessionStorage'))
    return this
  }

  #respond(response: ServerResponse, status: number, code: string): void {
    response.writeHead(status, code === '' ? { ...PROBLEM, 'content-type': 'application/json' } : PROBLEM)
    response.end(status === 204 ? undefined : problemBody(code, { status }))
  }

  order(
    json: object = ORDER,
    options: Parameters<typeof once>[1] = REMEMBERED,
    signal?: AbortSignal,
  ): Promise<unknown> {
    return this.orderWith(JSON.stringify(json), options, signal)
  }

  orderWith(
    body: NonNullable<RequestInit['body']>,
    options: Parameters<typeof once>[1] = REMEMBERED,
    signal: AbortSignal | null = null,
  ): Promise<unknown> {
    const { api } = this.#client as Client
    return once((idempotencyKey) => api(TRANSFER, { method: 'POST', body, idempotencyKey, signal }), options)
  }

  /** The state of the session, as the page knows it. */
  get state(): string | undefined {
    return this.#client?.session.get().status
  }

  /** Makes an order whose response is lost, twice, and reloads the page. @returns its key */
  async lose(t: Test, json: object = ORDER): Promise<string> {
    this.script = ['cut', 'cut']
    t.match(await failure(this.order(json)), { outcome: 'unknown' })
    // The page is reloaded.
    const { origin } = new URL(this.#client?.session.loginUrl('login', { returnTo: '/' }) ?? '')
    this.#client = createClient({ baseUrl: origin })
    return this.keys.at(-1) ?? ''
  }
}
