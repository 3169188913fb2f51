import { randomUUID } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isOutOfDescriptors } from '../telemetry/descriptors.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { Problem } from '../problem.ts'
import type { Envelope } from '../sessions/index.ts'
import { sharedResponseKey } from '../store/keys.ts'
import { StoreUnavailable, type Store } from '../store/store.ts'
import { responseHeaders, USER_AGENT, type UpstreamHeaders } from '../upstream/headers.ts'
import { codeOf } from '../upstream/no-response.ts'
import type { RestClient } from '../upstream/rest-client.ts'
import type { Endpoint } from './endpoint.ts'
import { upstreamOutcome, upstreamProblem } from './upstream-problem.ts'

/** Browsers that wait for one and the same response; anybody can send them, without a login. */
const MAX_WAITING = 512
const POLL_MS = 100
/** A larger one is shared within this process alone. */
const MAX_STORED_BYTES = 8192
/** The secret that a sealed response is bound to beside those of the server: there is no holder. */
const NO_HOLDER = 'shared response'
/** Of a request that failed for want of a file descriptor, whichever of its steps did. */
const OUR_CODE = 'EMFILE'

/** A response, or that there was none: a failure is shared too, or a crowd would hammer a service in trouble. */
type Outcome =
  | {
      readonly is: 'answered'
      readonly status: number
      readonly headers: UpstreamHeaders
      /** Base64. */
      readonly body: string
    }
  | { readonly is: 'withheld'; readonly status: number }
  | { readonly is: 'unreachable' | 'lost' | 'timeout'; readonly code?: string }

/** What upstream said, and until when nobody asks again (epoch ms). */
interface Shared {
  readonly outcome: Outcome
  readonly freshUntil: number
}

/** What shared responses are made with. */
export interface SharedResponseDependencies {
  readonly rest: RestClient
  readonly metrics: Metrics
  readonly store: Store
  readonly envelope: Envelope
  /** Least time between two requests of all instances. */
  readonly everyMs: number
  /** Longest wait for upstream. */
  readonly timeoutMs: number
}

/**
 * The response of an endpoint that is the same for everybody: asked for at most once in a while by all instances together,
 * one request at a time, however many browsers ask. The query is not passed on: it would make every request another one.
 */
export class SharedResponse {
  readonly #endpoint: Endpoint
  readonly #deps: SharedResponseDependencies
  readonly #key: string
  #last: Shared | undefined
  /** While another instance asks, this one looks for what comes of it no more often than it polls (epoch ms). */
  #lookAgainAt = 0
  #refreshing: Promise<Shared> | undefined
  #waiting = 0

  constructor(endpoint: Endpoint, deps: SharedResponseDependencies) {
    this.#endpoint = endpoint
    this.#deps = deps
    this.#key = sharedResponseKey(endpoint.path)
  }

  /** Answers with what is shared; who finds it too old asks anew, and waits. @throws Problem */
  async send(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { outcome } = await this.#current(request.id)
    if (outcome.is !== 'answered') throw upstreamProblem(failure(outcome), true)
    reply.hijack()
    const headers = responseHeaders(reply.getHeaders(), outcome.headers)
    reply.raw.writeHead(outcome.status, headers).end(Buffer.from(outcome.body, 'base64'))
  }

  async #current(requestId: string): Promise<Shared> {
    const last = this.#last
    if (last !== undefined && Date.now() < Math.max(last.freshUntil, this.#lookAgainAt)) return last
    if (this.#refreshing === undefined) {
      this.#refreshing = this.#refresh(requestId).finally(() => (this.#refreshing = undefined))
      return this.#refreshing
    }
    if (last !== undefined && this.#isRecent(last)) return last
    if (this.#waiting >= MAX_WAITING) throw new Problem('rate_limited', { retryAfterSeconds: 1 })
    this.#waiting++
    return this.#refreshing.finally(() => this.#waiting--)
  }

  /** Good enough for those who come while the next one is on its way. */
  #isRecent({ freshUntil }: Shared): boolean {
    return Date.now() < freshUntil + this.#deps.everyMs
  }

  /** Whoever makes the record asks; the others read what it comes to. */
  async #refresh(requestId: string): Promise<Shared> {
    const { store, timeoutMs } = this.#deps
    const giveUpAt = Date.now() + timeoutMs
    const claim = randomUUID()
    try {
      do {
        // It outlives the longest wait, so that no second request starts meanwhile.
        if (await store.create(this.#key, claim, Date.now() + timeoutMs + POLL_MS)) {
          return await this.#ask(requestId, claim)
        }
        const text = (await store.readUntracked(this.#key))?.value
        const shared = text === undefined ? undefined : this.#open(text)
        if (shared !== undefined) return (this.#last = shared)
        if (this.#last !== undefined && this.#isRecent(this.#last)) {
          this.#lookAgainAt = Date.now() + POLL_MS
          return this.#last
        }
        await new Promise((resolve) => void setTimeout(resolve, POLL_MS))
      } while (Date.now() < giveUpAt)
      return { outcome: { is: 'timeout' }, freshUntil: 0 }
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      // Each process asks for itself.
      return this.#ask(requestId, undefined)
    }
  }

  async #ask(requestId: string, claim: string | undefined): Promise<Shared> {
    const { everyMs } = this.#deps
    const askedAt = Date.now()
    const outcome = await this.#exchange(requestId)
    const shared: Shared = { outcome, freshUntil: Math.max(askedAt + everyMs, Date.now()) }
    this.#last = shared
    if (claim !== undefined) await this.#publish(shared, claim).catch(() => undefined)
    return shared
  }

  async #publish(shared: Shared, claim: string): Promise<void> {
    const { store, envelope } = this.#deps
    const { outcome, freshUntil } = shared
    // That this process has no descriptor left is no news of upstream, and says nothing of those who read it.
    const isOurs = 'code' in outcome && outcome.code === OUR_CODE
    const text = JSON.stringify(isOurs ? { outcome: { is: outcome.is }, freshUntil } : shared)
    if (text.length > MAX_STORED_BYTES) return
    // Sealed, so that who can write to the store cannot say anything in upstream's name.
    const sealed = envelope.seal(this.#key, NO_HOLDER, text)
    await store.replace(this.#key, claim, sealed, freshUntil)
  }

  #open(text: string): Shared | undefined {
    const opened = this.#deps.envelope.open(this.#key, NO_HOLDER, text)
    return opened === undefined ? undefined : (JSON.parse(opened) as Shared)
  }

  async #exchange(requestId: string): Promise<Outcome> {
    const { rest, metrics, timeoutMs } = this.#deps
    const { method, path } = this.#endpoint
    const headers = ['user-agent', USER_AGENT, 'x-request-id', requestId]
    const sentAt = performance.now()
    const outcome = await rest.exchange({ method, path, headers, body: null, timeoutMs })
    metrics.upstreamRequests.count(path, upstreamOutcome(outcome))
    metrics.upstreamLatency.add(path, { method }, (performance.now() - sentAt) / 1000)
    if (outcome.is !== 'answered') {
      return { is: outcome.is, code: isOutOfDescriptors(outcome.cause) ? OUR_CODE : codeOf(outcome.cause) }
    }
    const { status, headers: responded, body } = outcome.response
    const isWithheld = status >= 500 || (status >= 300 && status < 400)
    if (isWithheld) return { is: 'withheld', status }
    return { is: 'answered', status, headers: responded, body: body.toString('base64') }
  }
}

function failure(outcome: Exclude<Outcome, { is: 'answered' }>): Parameters<typeof upstreamProblem>[0] {
  const { code } = outcome as { readonly code?: string }
  const cause = Object.assign(new Error('the request that all share failed'), { code })
  switch (outcome.is) {
    case 'withheld':
      return outcome
    case 'lost':
      return { is: 'lost', cause, responseBegan: false }
    case 'unreachable':
    case 'timeout':
      return { is: outcome.is, cause }
  }
}
