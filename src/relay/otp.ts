import type { Config } from '../config.ts'
import { USER_AGENT } from '../upstream/headers.ts'
import type { RestClient } from '../upstream/rest-client.ts'
import { ENDINGS, type Ending } from './close-codes.ts'

/** What asking for a one-time WebSocket URL came to. The URL is a credential: used once, never logged. */
export type OtpOutcome =
  | { readonly is: 'url'; readonly url: URL }
  /** The bearer was refused. */
  | { readonly is: 'unauthorized' }
  | { readonly is: 'refused'; readonly ending: Ending; readonly why: string }

const MAX_DEPTH = 8

/** Asks upstream for one-time WebSocket URLs (interface 4.1, OTP endpoint). */
export class OtpClient {
  readonly #rest: RestClient
  readonly #config: Config['relay']
  readonly #upstream: Config['upstream']
  readonly #hosts: ReadonlySet<string>
  readonly #schemes: readonly string[]

  constructor(rest: RestClient, config: Config['relay'], upstream: Config['upstream']) {
    this.#rest = rest
    this.#config = config
    this.#upstream = upstream
    const { protocol } = new URL(config.wsUrl)
    this.#schemes = protocol === 'ws:' ? ['ws:', 'wss:'] : ['wss:']
    // Compared as URLs have them: without the scheme's own port, in lower case.
    this.#hosts = new Set([
      new URL(config.wsUrl).host,
      ...config.otpHosts.map((host) => new URL(`${protocol}//${host}`).host),
    ])
  }

  /** @param accountId already checked against the id pattern */
  async request(accountId: string, accessToken: string, requestId: string): Promise<OtpOutcome> {
    const { appIdHeader, appId, headersMs } = this.#upstream
    try {
      const { status, body } = await this.#rest.fetch({
        method: 'POST',
        path: `/trading/v1/options/accounts/${accountId}/otp`,
        headers: [
          ...['user-agent', USER_AGENT, 'x-request-id', requestId, 'accept', 'application/json'],
          ...['authorization', `Bearer ${accessToken}`, appIdHeader, appId],
        ],
        body: null,
        timeoutMs: headersMs,
      })
      if (status === 401) return { is: 'unauthorized' }
      if (status < 200 || status >= 300)
        return { is: 'refused', ending: endingOf(status), why: `status ${status}` }
      const url = this.#find(body)
      return url instanceof URL
        ? { is: 'url', url }
        : { is: 'refused', ending: ENDINGS.upstreamError, why: url }
    } catch (error) {
      const isTimeout = error instanceof Error && error.name === 'TimeoutError'
      const ending = isTimeout ? ENDINGS.upstreamTimeout : ENDINGS.upstreamUnreachable
      return { is: 'refused', ending, why: error instanceof Error ? error.name : 'unknown' }
    }
  }

  /** The URL in an answer, or why it cannot be used; never a part of the answer itself. */
  #find(body: Buffer): URL | string {
    let answer: unknown
    try {
      answer = JSON.parse(body.toString('utf8'))
    } catch {
      return 'the answer is not JSON'
    }
    const found = at(answer, this.#config.otpUrlPointer)
    const candidates = typeof found === 'string' ? [found] : [...new Set(socketUrls(answer, MAX_DEPTH))]
    const [text, ...more] = candidates
    if (text === undefined) return 'the answer carries no WebSocket URL'
    if (more.length > 0) return 'the answer carries several WebSocket URLs'
    const url = URL.parse(text)
    if (url === null || !this.#schemes.includes(url.protocol)) return 'the URL has the wrong scheme'
    if (!this.#hosts.has(url.host)) return 'the URL names a host that is not allowed'
    if (url.username !== '' || url.password !== '') return 'the URL carries userinfo'
    return url
  }
}

function endingOf(status: number): Ending {
  switch (status) {
    case 403:
      return ENDINGS.forbidden
    case 404:
      return ENDINGS.notFound
    case 429:
      return ENDINGS.rateLimited
    default:
      return ENDINGS.upstreamError
  }
}

/** The value a JSON pointer names (RFC 6901). */
function at(document: unknown, pointer: string): unknown {
  let value = document
  for (const token of pointer.split('/').slice(1)) {
    const key = token.replaceAll('~1', '/').replaceAll('~0', '~')
    if (!(value instanceof Object) || !Object.hasOwn(value, key)) return undefined
    value = (value as Record<string, unknown>)[key]
  }
  return value
}

/** Every ws(s) URL anywhere in a document; an answer may even be JSON inside a JSON string. */
function* socketUrls(value: unknown, depth: number): Generator<string> {
  if (depth === 0) return
  if (typeof value === 'string') {
    if (/^wss?:\/\//i.test(value)) yield value
    else if (value.startsWith('{')) yield* socketUrls(parsed(value), depth - 1)
  } else if (value instanceof Object) {
    for (const inner of Object.values(value)) yield* socketUrls(inner, depth - 1)
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
