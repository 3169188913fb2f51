import type { Readable } from 'node:stream'
import { Agent, type Dispatcher } from 'undici'
import type { Config } from '../config.ts'
import { Forwarding, type ForwardOutcome, type ForwardRequest } from './forwarding.ts'

/** One request to the upstream REST API, its path already built from the catalog. */
export interface RestRequest {
  readonly method: Dispatcher.HttpMethod
  /** Path below API_URL, with the query. */
  readonly path: string
  /** Flat list of names and values. */
  readonly headers: readonly string[]
  readonly body: Readable | null
  readonly timeoutMs?: number
}

/** The whole of a small answer. */
export interface RestAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

const MAX_BUFFERED_BYTES = 65_536
const MAX_CONNECTIONS = 512

/** Connections to the upstream REST API, kept alive. Redirects are not followed, bodies not decoded, nothing retried. */
export class RestClient {
  readonly #agent: Agent
  readonly #origin: string
  readonly #basePath: string

  constructor(config: Config['upstream']) {
    const { origin, pathname } = new URL(config.apiUrl)
    this.#origin = origin
    this.#basePath = pathname === '/' ? '' : pathname
    this.#agent = new Agent({
      connections: MAX_CONNECTIONS,
      connect: { timeout: config.connectMs },
      headersTimeout: config.headersMs,
      bodyTimeout: config.bodyMs,
    })
  }

  /** Sends a request and streams its answer to the browser. Never rejects. */
  async forward(request: RestRequest, to: ForwardRequest): Promise<ForwardOutcome> {
    const forwarding = new Forwarding(to)
    try {
      this.#agent.dispatch(this.#options(request), forwarding)
    } catch (error) {
      forwarding.onResponseError(undefined, error as Error)
    }
    return forwarding.outcome
  }

  /** Sends a request and reads its answer whole. @throws the connection's error; Error when it is too large */
  async fetch(request: RestRequest): Promise<RestAnswer> {
    const options = this.#options(request)
    const { statusCode, headers, body } = await this.#agent.request({
      ...options,
      signal: AbortSignal.timeout(request.timeoutMs ?? 10_000),
    })
    const chunks: Buffer[] = []
    let bytes = 0
    for await (const chunk of body as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > MAX_BUFFERED_BYTES) throw new Error('the answer is too large')
      chunks.push(chunk)
    }
    return { status: statusCode, headers, body: Buffer.concat(chunks) }
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    await this.#agent.destroy()
  }

  #options({ method, path, headers, body }: RestRequest) {
    return {
      origin: this.#origin,
      path: this.#basePath + path,
      method,
      headers: headers as string[],
      body,
    }
  }
}
