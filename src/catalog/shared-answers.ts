import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Metrics } from '../measure.ts'
import { Problem } from '../problem.ts'
import type { RestAnswer } from '../upstream/collecting.ts'
import { responseHeaders, USER_AGENT } from '../upstream/headers.ts'
import type { RestClient } from '../upstream/rest-client.ts'
import type { Endpoint } from './endpoint.ts'
import { upstreamProblem } from './upstream-problem.ts'

/** Browsers that wait for one and the same answer; anybody can send them, without a login. */
const MAX_WAITING = 512

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
  #waiting = 0

  constructor(rest: RestClient, metrics: Metrics) {
    this.#rest = rest
    this.#metrics = metrics
  }

  /** Answers from what is shared, or asks upstream. @throws Problem */
  async send(endpoint: Endpoint, path: string, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    if (this.#waiting >= MAX_WAITING) throw new Problem('rate_limited', { retryAfterSeconds: 1 })
    this.#waiting++
    const answer = await this.#ask(endpoint, path, request.id).finally(() => this.#waiting--)
    if (answer instanceof Problem) throw answer
    reply.hijack()
    reply.raw.writeHead(answer.status, responseHeaders(reply.getHeaders(), answer.headers)).end(answer.body)
  }

  #ask(endpoint: Endpoint, path: string, requestId: string): Promise<RestAnswer | Problem> {
    const known = this.#shared.get(endpoint)
    if (known !== undefined && Date.now() < known.freshUntil) return known.answer
    const answer = this.#fetch(endpoint, path, requestId, true)
    const shared: Shared = { answer, freshUntil: Number.POSITIVE_INFINITY }
    this.#shared.set(endpoint, shared)
    void answer.then(() => {
      shared.freshUntil = Date.now() + (endpoint.sharedForMs ?? 0)
    })
    return answer
  }

  async #fetch(
    endpoint: Endpoint,
    path: string,
    requestId: string,
    mayReconnect: boolean,
  ): Promise<RestAnswer | Problem> {
    const headers = ['user-agent', USER_AGENT, 'x-request-id', requestId]
    const { method, timeoutMs } = endpoint
    const sentAt = performance.now()
    const outcome = await this.#rest.exchange({ method, path, headers, body: null, timeoutMs })
    const { upstreamRequests, upstreamLatency } = this.#metrics
    upstreamRequests.count(endpoint.path, outcome.is)
    upstreamLatency.add(endpoint.path, { method }, (performance.now() - sentAt) / 1000)
    if (outcome.is !== 'answered') {
      // As every GET: once more, when the connection failed before any byte of an answer.
      const mayRepeat = outcome.is === 'unreachable' || (outcome.is === 'lost' && !outcome.answerBegan)
      if (mayReconnect && mayRepeat) return this.#fetch(endpoint, path, requestId, false)
      return upstreamProblem(outcome, true)
    }
    const { answer } = outcome
    const { status } = answer
    const isHeld = status >= 500 || (status >= 300 && status < 400)
    return isHeld ? upstreamProblem({ is: 'held', status }, true) : answer
  }
}
