import type { FastifyBaseLogger } from 'fastify'
import type { Config } from '../config/config.ts'
import { logFailure } from '../telemetry/failure-log.ts'
import type { IdentityMetrics, IdentityOutcome } from '../telemetry/identity-metrics.ts'
import { within } from '../time/within.ts'
import type { FirstByteConditions } from '../upstream/first-byte.ts'
import { ownRequestHeaders } from '../upstream/headers.ts'
import { valueAt } from '../upstream/json-pointer.ts'
import { codeOf } from '../upstream/no-response.ts'
import type { RestClient } from '../upstream/rest-client.ts'
import { IDENTITY_TIMEOUT_MS, isSubject, MAX_CHARACTERS } from './session.ts'

/** Strict: a replacement character could stand for the names of different users. */
const UTF8 = new TextDecoder('utf-8', { fatal: true })

interface IdentityConfig {
  readonly upstream: Config['upstream']
  readonly identity: NonNullable<Config['identity']>
}

/** The request of a login or an order, for the log and for upstream. */
interface Asker {
  readonly id: string
  readonly log: FastifyBaseLogger
  /** The consequence of a failure, for the log; by default a login without a subject. */
  readonly consequence?: string
  /** These must hold when the request is sent. */
  readonly conditions?: FirstByteConditions
}

type Answer =
  | { readonly is: 'found'; readonly subject: string }
  | { readonly is: Exclude<IdentityOutcome, 'found'>; readonly why: string }

/** Asks upstream for the subject of an access token (docs/upstream.md, Identity). */
export class Identity {
  readonly #rest: RestClient
  readonly #config: IdentityConfig
  readonly #metrics: IdentityMetrics

  constructor(rest: RestClient, config: IdentityConfig, metrics: IdentityMetrics) {
    this.#rest = rest
    this.#config = config
    this.#metrics = metrics
  }

  close(): Promise<void> {
    return this.#rest.close()
  }

  /** The subject of an access token. Undefined after a failure, which is logged and counted. Never rejects. */
  async ask(accessToken: string, { id, log, consequence, conditions }: Asker): Promise<string | undefined> {
    const answer = await this.#request(accessToken, id, conditions)
    this.#metrics.requests.inc({ outcome: answer.is })
    if (answer.is === 'found') return answer.subject
    // The response belongs to a user, so it is neither quoted nor named as a cause.
    logFailure(log, consequence ?? 'a login goes on without a subject', { outcome: answer.is, why: answer.why })
    return undefined
  }

  async #request(accessToken: string, requestId: string, conditions: FirstByteConditions = {}): Promise<Answer> {
    const { upstream, identity } = this.#config
    const headers = ownRequestHeaders(requestId, accessToken, upstream)
    // The login has no subject yet. Without one of its own, all logins together would count as one user in the budget.
    const call = {
      method: 'GET',
      path: identity.path,
      template: identity.path,
      headers,
      body: null,
      timeoutMs: IDENTITY_TIMEOUT_MS,
      subject: requestId,
      conditions,
    } as const
    const timeout = new AbortController()
    // The budget does not look at the signal, and its ledger may be slow to reply.
    const outcome = await within(IDENTITY_TIMEOUT_MS, this.#rest.exchange(call, timeout.signal))
    if (outcome === undefined) {
      timeout.abort()
      return { is: 'timeout', why: 'TimeoutError' }
    }
    switch (outcome.is) {
      case 'answered':
        return this.#judge(outcome.response)
      case 'overBudget':
        return { is: 'over_budget', why: 'no call is left' }
      case 'unreachable':
      case 'timeout':
      case 'lost':
        return { is: outcome.is, why: codeOf(outcome.cause) }
    }
  }

  #judge({ status, body }: { readonly status: number; readonly body: Buffer }): Answer {
    if (status < 200 || status >= 300) return { is: 'refused', why: `status ${status}` }
    let document: unknown
    try {
      document = JSON.parse(UTF8.decode(body), exactNumbers)
    } catch {
      return { is: 'unusable', why: 'the response is not JSON' }
    }
    const subject = subjectOf(valueAt(document, this.#config.identity.pointer))
    return subject === undefined
      ? { is: 'unusable', why: `IDENTITY_POINTER names no string or number of 1 to ${MAX_CHARACTERS} characters` }
      : { is: 'found', subject }
  }
}

/** Keeps the digits of a number that JavaScript would round: two users must not become one. */
function exactNumbers(this: unknown, _key: string, value: unknown, { source }: { source?: string } = {}): unknown {
  return typeof value === 'number' && !Number.isSafeInteger(value) ? source : value
}

function subjectOf(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value)
  return typeof value === 'string' && isSubject(value) ? value : undefined
}
