import type { Test } from 'tap'
import { sendTo, type Answer, ACCOUNTS } from '../user.ts'
import { BrowserSocket } from '../browser/browser-socket.ts'
import { countingUpstream, type CountingUpstream } from './counting-upstream.ts'
import { newSession, sessionInstance, type SessionInstance } from '../sessions/session-instance.ts'
import { ALONE } from '../server/settings.ts'
import { SECRETS, testRedis, testServer, type TestServer } from '../server/test-server.ts'

/** A session of somebody, and the address that they call from. */
export interface User {
  readonly cookie: string
  readonly token: string
  readonly address: string
}

/** Instances with a budget on one Redis, whose upstream limits those users that a test names. */
export class LimitedWorld {
  readonly upstream: CountingUpstream
  readonly servers: readonly TestServer[]
  readonly settings: Readonly<Record<string, string>>
  /** The access tokens that upstream answers with 429. */
  readonly limited = new Set<string>()
  /** Whether upstream limits the address of the instances, and so everybody. */
  isAddressLimited = false
  /** The headers of its 429s. */
  retryAfter: string | undefined = '30'
  readonly #instance: SessionInstance
  #users = 0

  private constructor(
    upstream: CountingUpstream,
    servers: readonly TestServer[],
    settings: Record<string, string>,
    instance: SessionInstance,
  ) {
    this.upstream = upstream
    this.servers = servers
    this.settings = settings
    this.#instance = instance
    upstream.intercept = (_budgetClass, response, token) => {
      if (!this.isAddressLimited && !this.limited.has(token)) return false
      const headers = this.retryAfter === undefined ? {} : { 'retry-after': this.retryAfter }
      response.writeHead(429, headers).end('{"error":"slow down"}')
      return true
    }
  }

  /** Starts two instances that end with the test. */
  static async start(t: Test): Promise<LimitedWorld> {
    const upstream = await countingUpstream(t)
    const redis = await testRedis(t)
    const settings = {
      ...ALONE,
      API_URL: upstream.url,
      WS_URL: upstream.url.replace('http', 'ws'),
      REDIS_URL: redis.url,
      SESSION_SECRETS: SECRETS,
      TRUST_PROXY: '1',
      // A short window, so that a new ledger is quiet for five seconds only.
      UPSTREAM_BUDGET: '600/20',
    }
    const servers = await Promise.all([testServer(t, settings), testServer(t, settings)])
    return new LimitedWorld(upstream, servers, settings, await sessionInstance(t, redis.url))
  }

  /** A new session: of the subject, if one is named, and from an address of its own, unless another is. */
  async user({ subject, address }: { subject?: string; address?: string } = {}): Promise<User> {
    const number = ++this.#users
    const token = `token${number}`
    const more = { accessToken: token, ...(subject !== undefined && { subject }) }
    const cookie = this.#instance.cookie(await newSession(this.#instance, more))
    return { cookie, token, address: address ?? `192.0.2.${number}` }
  }

  /** Sends an order of a user by an instance. */
  order(at: number, user: User, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return this.orderBy(this.#port(at), user, headers)
  }

  /** The same by a server at a port. */
  orderBy(port: number, user: User, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return send(port, user, 'POST', { ...headers, 'content-type': 'application/json' }, '{}')
  }

  /** Sends a read of a user by an instance. */
  read(at: number, user: User): Promise<Answer> {
    return send(this.#port(at), user, 'GET', {})
  }

  /** Opens a trading socket of a user by an instance, and waits for its close. Where nothing limits it, upstream answers 403. */
  async socket(at: number, { cookie, address }: User): Promise<string> {
    const headers = { origin: ALONE.PUBLIC_URL, cookie, 'x-forwarded-for': address }
    const { code, reason } = await new BrowserSocket(`ws://127.0.0.1:${this.#port(at)}/ws/trading/DEMO1`, headers)
      .closed
    return `${code} ${reason}`
  }

  #port(at: number): number {
    return this.servers[at]?.port ?? 0
  }
}

function send(port: number, { cookie, address }: User, method: string, more: Record<string, string>, body?: string) {
  const headers = { cookie, 'x-csrf': '1', 'x-forwarded-for': address, ...more }
  return sendTo(port, method, ACCOUNTS, { headers, ...(body !== undefined && { body }) })
}
