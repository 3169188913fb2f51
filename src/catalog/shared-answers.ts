import type { FastifyReply } from 'fastify'
import type { Metrics } from '../measure.ts'
import { Problem } from '../problem.ts'
import { responseHeaders, USER_AGENT } from '../upstream/headers.ts'
import type { RestAnswer, RestClient } from '../upstream/rest-client.ts'
import type { Endpoint } from './endpoint.ts'

/** An answer, or that there was none: a failure is shared too, or a crowd would hammer a service in trouble. */
type Shared = { readonly answer: Promise<RestAnswer | Problem>; freshUntil: number }

/**
 * Answers that are the same for everybody, asked for once in a while however many browsers ask. The query is not
 * passed on: it would make every request another one.
 */
export class SharedAnswers {
  readonly #rest: RestClient
  readonly #metrics: Metrics
  readonly #shared = new Map<Endpoint, Shared>()

  constructor(rest: RestClient, metrics: Metrics) {
    this.#rest = rest
    this.#metrics = metrics
  }

  /** Answers from what is shared, or asks upstream. @throws Problem */
  async send(endpoint: Endpoint, path: string, reply: FastifyReply): Promise<FastifyReply> {
    const answer = await this.#ask(endpoint, path)
    if (answer instanceof Problem) throw answer
    reply.code(answer.status).headers(responseHeaders(answer.headers, {}))
    return reply.send(answer.body)
  }

  #ask(endpoint: Endpoint, path: string): Promise<RestAnswer | Problem> {
    const known = this.#shared.get(endpoint)
    if (known !== undefined && Date.now() < known.freshUntil) return known.answer
    const shared: Shared = { answer: this.#fetch(endpoint, path), freshUntil: Number.POSITIVE_INFINITY }
    this.#shared.set(endpoint, shared)
    void shared.answer.then(() => {
      shared.freshUntil = Date.now() + (endpoint.sharedForMs ?? 0)
    })
    return shared.answer
  }

  async #fetch(endpoint: Endpoint, path: string): Promise<RestAnswer | Problem> {
    const headers = ['user-agent', USER_AGENT]
    try {
      const answer = await this.#rest.fetch({ method: endpoint.method, path, headers, body: null })
      this.#metrics.upstreamRequests.inc({ route: endpoint.path, outcome: 'answered' })
      if (answer.status >= 500) return new Problem('upstream_error', { status: answer.status })
      if (answer.status >= 300) return answer.status < 400 ? new Problem('upstream_error') : answer
      return answer
    } catch (cause) {
      this.#metrics.upstreamRequests.inc({ route: endpoint.path, outcome: 'lost' })
      return new Problem('upstream_unreachable', { cause })
    }
  }
}
