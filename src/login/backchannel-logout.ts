import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ProviderConfig } from '../config/provider.ts'
import { handleError, toProblem } from '../http/errors.ts'
import { loggedAddress, requesterOf } from '../http/requester.ts'
import { network } from '../limits/networks.ts'
import { readLogoutToken, type LogoutFault, type LogoutToken } from '../oauth/logout-tokens.ts'
import type { OpenId } from '../oauth/open-id.ts'
import { Problem } from '../problem.ts'
import type { ProviderLogouts, Sessions } from '../sessions/index.ts'
import { StoreUnavailable } from '../store/store.ts'
import { audit, auditBounded } from '../telemetry/audit/audit.ts'
import { logFailure } from '../telemetry/failure-log.ts'
import type { LogoutOutcome } from '../telemetry/oidc-metrics.ts'
import type { LogoutSenders } from './logout-senders.ts'

const FORM = /^application\/x-www-form-urlencoded[ \t]*(?:;|$)/i
const RETRY_SECONDS = 1

/** Why a request is no logout. */
type Fault = LogoutFault | 'form' | 'signature'

interface Parts {
  readonly config: Pick<ProviderConfig, 'issuer' | 'clientId'>
  readonly openId: OpenId
  readonly logouts: ProviderLogouts
  readonly senders: LogoutSenders
  readonly sessions: Pick<Sessions, 'subjectTag'>
}

/**
 * A logout by the provider. Its token is its only credential, so everybody may send one: what is cheap is checked first, the
 * signature next, and the store learns of valid tokens only.
 */
export class BackchannelLogout {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Refuses a request before its body is read. @throws Problem rate_limited, bad_request */
  admit(request: FastifyRequest): void {
    if (this.#parts.senders.isOver(request.ip)) throw this.#limited()
    if (!FORM.test(request.headers['content-type'] ?? '')) throw this.#uncheckedRefusal(request, 'form')
  }

  /** @throws Problem, StoreUnavailable: the provider may send the token again */
  async end(request: FastifyRequest, body: Buffer | undefined): Promise<void> {
    const { openId, logouts, senders, sessions } = this.#parts
    const token = await this.#validToken(request, body)
    try {
      const ended = await logouts.end(token, requesterOf(request))
      const subject = sessions.subjectTag(token.subject)
      audit(request.log, 'provider_logout', { client: loggedAddress(request.ip), subject, ended })
    } catch (error) {
      if (error instanceof StoreUnavailable) openId.metrics.logouts.inc({ outcome: 'store_away' })
      throw error
    }
    openId.metrics.logouts.inc({ outcome: 'ended' })
    // Best effort: until then the address has the limit of a stranger.
    await senders.noteValid(request.ip).catch(() => undefined)
  }

  /** Responds to what Fastify, or a step above, has thrown. A body that is too large or no form is malformed, too. */
  fail(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const problem = toProblem(error)
    const isForeign = !(error instanceof Problem) && problem.status < 500
    return handleError(isForeign ? this.#uncheckedRefusal(request, 'form') : error, request, reply)
  }

  async #validToken(request: FastifyRequest, body: Buffer | undefined): Promise<LogoutToken> {
    const { config, openId, senders } = this.#parts
    const [text, ...more] = new URLSearchParams(body?.toString()).getAll('logout_token')
    if (text === undefined || more.length > 0) throw this.#uncheckedRefusal(request, 'form')
    const reading = readLogoutToken(text, config)
    if (reading.is === 'false') throw this.#uncheckedRefusal(request, reading.fault, reading.ageSeconds)
    const signature = await senders.check(request.ip, () => openId.keys.check(text, 'logout'))
    switch (signature?.is) {
      case 'valid':
        return reading.token
      case 'invalid':
        throw this.#refusal(request, 'signature')
      case 'away':
        this.#count('keys_away')
        logFailure(request.log, 'a logout of the provider waits for its keys', {}, signature.cause)
        throw new Problem('provider_unavailable', { retryAfterSeconds: RETRY_SECONDS, cause: signature.cause })
      case undefined:
        throw this.#limited()
    }
  }

  #limited(): Problem {
    this.#count('limited')
    return new Problem('rate_limited', { retryAfterSeconds: RETRY_SECONDS })
  }

  /** Refuses a token before its signature is checked. */
  #uncheckedRefusal(request: FastifyRequest, fault: Fault, ageSeconds?: number): Problem {
    this.#parts.senders.countFalse(request.ip)
    return this.#refusal(request, fault, ageSeconds)
  }

  #refusal(request: FastifyRequest, fault: Fault, ageSeconds = 0): Problem {
    this.#count('false')
    const details = {
      fault,
      client: loggedAddress(request.ip),
      ...(fault === 'age' && { age: Math.max(0, ageSeconds), ahead: Math.max(0, -ageSeconds) }),
    }
    const emphasis =
      fault === 'age' ? { message: 'a logout of the provider was refused: compare its clock with ours' } : {}
    auditBounded(request.log, 'provider_logout_refused', details, `${fault}|${network(request.ip)}`, emphasis)
    return new Problem('bad_request', { detail: DETAILS[fault], oauthError: 'invalid_request' })
  }

  #count(outcome: LogoutOutcome): void {
    this.#parts.openId.metrics.logouts.inc({ outcome })
  }
}

/** Tells the provider's operator what is wrong, and nothing that a stranger does not know. */
const DETAILS: Readonly<Record<Fault, string>> = {
  form: 'The body must be a form of at most 16 KiB with exactly one logout_token.',
  shape: 'The logout token is not a signed JWT.',
  algorithm: 'The logout token is not signed with the private key of an accepted algorithm.',
  issuer: 'The logout token is of another issuer.',
  audience: 'The logout token is for another client.',
  type: 'The typ of the logout token is neither logout+jwt nor JWT.',
  age: 'The iat of the logout token is missing, in the future, or too long ago.',
  expired: 'The logout token has expired.',
  events: 'The logout token has no event of a back-channel logout.',
  subject: 'The logout token has neither a sub nor a sid of 1 to 255 characters.',
  nonce: 'The logout token has a nonce.',
  signature: 'The signature of the logout token is not valid.',
}
