import type { Config } from '../../config/config.ts'
import type { OverBudget } from '../../upstream/budget/admission.ts'
import { Permits } from '../../limits/permits.ts'
import { NotStarted } from '../../upstream/exchange.ts'
import type { FirstByteConditions } from '../../upstream/first-byte.ts'
import { ownRequestHeaders } from '../../upstream/headers.ts'
import type { RestResponse } from '../../upstream/buffered-exchange.ts'
import { valueAt } from '../../upstream/json-pointer.ts'
import { codeOf, type NoResponse } from '../../upstream/no-response.ts'
import type { RestClient } from '../../upstream/rest-client.ts'
import { CONNECTIONS } from '../../upstream/rest-clients.ts'
import { judgeAfter } from '../../time/judge-after.ts'
import { CLOSE, fromStatus, type CloseStatus } from '../close-codes.ts'

/** The outcome of a request for a one-time WebSocket URL. The URL is a credential: it is used once and never logged. */
type OtpOutcome =
  | { readonly is: 'url'; readonly url: URL }
  /** Upstream refused the bearer. */
  | { readonly is: 'unauthorized' }
  /**
   * `cause` shows whether the fault is this server's. Its text may contain a URL, so the log gets `why` instead. `status` is a
   * 3xx or more.
   */
  | {
      readonly is: 'refused'
      readonly close: CloseStatus
      readonly why: string
      readonly cause?: Error
      readonly status?: number
    }
  /** Nothing was sent, because the session has changed or ended while the request waited. */
  | { readonly is: 'stale' }
  | OverBudget

/** The path of the request, for one account. */
const TEMPLATE = '/trading/v1/options/accounts/:account_id/otp'
const MAX_DEPTH = 8

/** One-time URLs that are requested at once for a user: a quarter of the connections that all users share. More of them wait. */
const MAX_ASKING = CONNECTIONS.oneTimeUrls / 4

/** Requests one-time WebSocket URLs of upstream (docs/upstream.md, One-time URLs). */
export class OtpClient {
  readonly #rest: RestClient
  readonly #config: Config['relay']
  readonly #upstream: Config['upstream']
  readonly #schemes: readonly string[]
  /** `host:port` in lower case, always with the port. */
  readonly #hosts: ReadonlySet<string>
  /** Requests under way, by user. */
  readonly #asking = new Permits()

  constructor(rest: RestClient, config: Config['relay'], upstream: Config['upstream']) {
    this.#rest = rest
    this.#config = config
    this.#upstream = upstream
    const wsUrl = new URL(config.wsUrl)
    this.#schemes = wsUrl.protocol === 'ws:' ? ['ws:', 'wss:'] : ['wss:']
    // A host without a port means the default port of each allowed scheme.
    const listed = config.otpHosts.flatMap((host) => this.#schemes.map((scheme) => new URL(`${scheme}//${host}`)))
    this.#hosts = new Set([wsUrl, ...listed].map(hostAndPort))
  }

  /**
   * @param accountId already checked against the id pattern
   * @param request the browser's request id, a signal that aborts the exchange, whose relay it is, for the budget, as what they
   * count there, and what must hold when it is sent
   */
  async request(
    accountId: string,
    accessToken: string,
    request: {
      readonly id: string
      readonly signal: AbortSignal
      readonly subject: string
      readonly source: () => string
      readonly conditions: FirstByteConditions
    },
  ): Promise<OtpOutcome> {
    const { subject, signal } = request
    if (!(await this.#mayAsk(subject, signal))) {
      return { is: 'refused', close: CLOSE.upstreamTimeout, why: 'others of the user are still under way' }
    }
    try {
      return await this.#request(accountId, accessToken, request)
    } finally {
      this.#asking.release(subject)
    }
  }

  /** Takes one of the user's places, or waits for it as long as for a response. */
  async #mayAsk(subject: string, signal: AbortSignal): Promise<boolean> {
    if (this.#asking.acquire(subject, MAX_ASKING)) return true
    const wait = new AbortController()
    const endTimer = judgeAfter(this.#upstream.headersMs, () => wait.abort())
    const isOver = AbortSignal.any([signal, wait.signal])
    return this.#asking.waitFor(subject, MAX_ASKING, isOver).finally(endTimer)
  }

  async #request(...[accountId, accessToken, request]: Parameters<OtpClient['request']>): Promise<OtpOutcome> {
    const { id, signal, ...caller } = request
    const path = TEMPLATE.replace(':account_id', accountId)
    const headers = ownRequestHeaders(id, accessToken, this.#upstream)
    const call = { method: 'POST', path, template: TEMPLATE, headers, body: null, ...caller } as const
    const outcome = await this.#rest.exchange(call, signal)
    switch (outcome.is) {
      case 'answered':
        return this.#judge(outcome.response)
      case 'overBudget':
        return outcome
      case 'unreachable': {
        const { cause } = outcome
        return cause instanceof NotStarted ? { is: 'stale' } : { ...refused(CLOSE.upstreamUnreachable, outcome), cause }
      }
      case 'timeout':
        return refused(CLOSE.upstreamTimeout, outcome)
      case 'lost':
        // A response that began may be too large, or not HTTP.
        return refused(outcome.responseBegan ? CLOSE.upstreamError : CLOSE.upstreamLost, outcome)
    }
  }

  #judge({ status, headers, body }: RestResponse): OtpOutcome {
    if (status === 401) return { is: 'unauthorized' }
    if (status < 200 || status >= 300) {
      const retryAfter = headers['retry-after']
      const close = fromStatus(status, typeof retryAfter === 'string' ? retryAfter : undefined)
      return { is: 'refused', close, why: `status ${status}`, status }
    }
    const url = this.#find(body)
    return url instanceof URL ? { is: 'url', url } : { is: 'refused', close: CLOSE.upstreamError, why: url }
  }

  /** The URL in a response, or why it cannot be used. The reason never quotes the response. */
  #find(body: Buffer): URL | string {
    const document = parsed(body.toString('utf8'))
    if (document === undefined) return 'the response is not JSON'
    const found = valueAt(document, this.#config.otpUrlPointer)
    const candidates = typeof found === 'string' ? [found] : [...new Set(socketUrls(document, MAX_DEPTH))]
    const [text, ...more] = candidates
    if (text === undefined) return 'the response has no WebSocket URL'
    if (more.length > 0) return 'the response has several WebSocket URLs'
    const url = URL.parse(text)
    if (url === null || !this.#schemes.includes(url.protocol)) return 'the URL has the wrong scheme'
    if (!this.#hosts.has(hostAndPort(url))) return 'the URL names a host that is not allowed'
    if (url.username !== '' || url.password !== '') return 'the URL has userinfo'
    if (url.hash !== '') return 'the URL has a fragment'
    return url
  }
}

function refused(close: CloseStatus, { is, cause }: NoResponse) {
  return { is: 'refused', close, why: `${is} (${codeOf(cause)})` } as const
}

/** Every ws(s) URL anywhere in a document, also in JSON inside a JSON string. */
function* socketUrls(value: unknown, depth: number): Generator<string> {
  if (depth === 0) return
  if (typeof value === 'string') {
    if (/^wss?:\/\//i.test(value)) yield value
    else if (/^\s*[[{]/.test(value)) yield* socketUrls(parsed(value), depth - 1)
  } else if (value instanceof Object) {
    for (const inner of Object.values(value)) yield* socketUrls(inner, depth - 1)
  }
}

function hostAndPort({ protocol, hostname, port }: URL): string {
  return `${hostname}:${port || (protocol === 'wss:' ? '443' : '80')}`
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
