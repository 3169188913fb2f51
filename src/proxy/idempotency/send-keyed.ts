import { Problem } from '../../problem.ts'
import type { Session } from '../../sessions/index.ts'
import { StoreUnavailable } from '../../store/store.ts'
import { waiting } from '../../telemetry/traces/span.ts'
import type { Stale } from '../../upstream/first-byte.ts'
import type { ForwardOutcome } from '../../upstream/forwarding.ts'
import { BodyRefused, JoinedPieces, type OutgoingBody } from '../../upstream/request-body.ts'
import { liveSession, renewedSession } from '../authorized-session.ts'
import type { Call, CallDependencies } from '../call.ts'
import { tokenNeedOf } from '../endpoint.ts'
import { send } from '../send.ts'
import { conclude, upstreamOutcome, upstreamProblem } from '../upstream-problem.ts'
import { AnswerSink } from './answer-sink.ts'
import { auditKeyed } from './audit-keyed.ts'
import type { Ending, Claim } from './claim.ts'
import type { IdempotencyRecords } from './idempotency-records.ts'
import { digestOf } from './record.ts'
import { repeatCall, sendAnswer } from './repeat-call.ts'

/** Dependencies of keyed calls. */
export interface KeyedDependencies extends CallDependencies {
  readonly records: IdempotencyRecords
}

/** A call with a key. */
export interface KeyedCall extends Call {
  readonly session: Session
  readonly idempotencyKey: string
}

type SentOutcome = Exclude<ForwardOutcome, Stale>

/**
 * Statuses by which upstream refuses a call before it executes anything, whatever becomes of the rest of the response. A 401
 * is one only where it refuses a bearer token, and is withheld: elsewhere it concerns a body that may hold several tokens.
 */
const NOT_EXECUTED: ReadonlySet<number> = new Set([413, 429])

/**
 * Sends a call with an Idempotency-Key at most once, or answers its repetition from the record. The record of the call is
 * in the store before its first byte goes upstream, and it is finished whether or not the browser waits for it.
 * @throws Problem, StoreUnavailable; nothing was sent if the store is unavailable
 */
export async function sendKeyed(deps: KeyedDependencies, call: KeyedCall, body: OutgoingBody): Promise<void> {
  const { endpoint, idempotencyKey, path } = call
  const received = await wholeBody(deps, call, body)
  if (received === undefined) return conclude({ is: 'browserGone', sent: 'nothing', status: 0 }, call)
  const { session, content } = received
  const current = { ...call, session }
  const digest = digestOf(endpoint.method, path, content)
  const claimed = await waiting('claim the Idempotency-Key', deps.records.claim(session, idempotencyKey, digest))
  if (claimed.is !== 'claimed') return repeatCall(claimed, current, deps)
  const { claim } = claimed
  return deps.records.track(sendClaimed(deps, current, claim, content).finally(() => claim.stop()))
}

/**
 * The body, read to its end. A large one may have taken a while, and its user may have logged out since, so the session is
 * read again. Undefined when the browser left.
 */
async function wholeBody(
  deps: KeyedDependencies,
  { endpoint, request, session }: KeyedCall,
  body: OutgoingBody,
): Promise<{ session: Session; content: Buffer | null } | undefined> {
  if (body.is === 'whole') return { session, content: body.content }
  const pieces = new JoinedPieces()
  try {
    for await (const piece of body.content) pieces.add(piece as Buffer)
  } catch (error) {
    if (error instanceof BodyRefused) throw error.problem
    // Otherwise this server has failed, and its browser waits for a response.
    if (error !== body.content.errored) throw error
    return undefined
  }
  return { session: await liveSession(deps, request, tokenNeedOf(endpoint)), content: pieces.joined() }
}

async function sendClaimed(
  deps: KeyedDependencies,
  original: KeyedCall,
  claim: Claim,
  content: Buffer | null,
): Promise<void> {
  const { endpoint, reply } = original
  const hasBudget = deps.upstream.budget !== undefined
  claim.onLost = () => auditKeyed(deps.metrics, original, 'record_lost')
  let large: Promise<Ending> | undefined
  const maxBytes = claim.mayKeep ? deps.records.limits.maxAnswerBytes : 0
  const onLarge = (status: number): void => {
    if (!NOT_EXECUTED.has(status)) large = claim.finish({ is: 'not_kept', status })
  }
  const sink = new AnswerSink(reply, { maxBytes, hasBudget, onLarge })
  const sent = await send(deps, original, framed(content), { claim, sink }).catch(async (error: unknown) => {
    // Any other error does not say that nothing was sent.
    const isUnsent = error instanceof Problem || error instanceof StoreUnavailable
    auditKeyed(deps.metrics, original, await (isUnsent ? claim.free() : claim.finish({ is: 'unknown' })))
    // This process was stopped, or had no store, for so long that others may have said what became of the call.
    const said = claim.isLost ? await deps.records.find(claim.own) : undefined
    if (said !== undefined) return said
    throw error
  })
  if ('is' in sent) return repeatCall(sent, original, deps)
  const { call, outcome } = sent
  deps.metrics.upstreamRequests.count(endpoint, upstreamOutcome(outcome))
  const ending = await waiting('record the response', large ?? settle(claim, outcome, sink))
  auditKeyed(deps.metrics, call, ending)
  if (sink.isStreaming) return outcome.is === 'answered' ? undefined : conclude(outcome, call)
  if (reply.raw.destroyed) return conclude(left(outcome), call)
  if (outcome.is === 'answered') return sendAnswer(reply, sink.answer, hasBudget)
  if (outcome.is === 'withheld' && outcome.status === 401) {
    await renewedSession(deps, call.request, call.session, true)
    throw new Problem('credential_renewed', { retryAfterSeconds: 0 })
  }
  // The browser has not seen any of it yet.
  if (outcome.is === 'cut') throw brokenOff(outcome)
  return conclude(outcome, call)
}

/** Writes into the record what became of the call. */
function settle(claim: Claim, outcome: SentOutcome, sink: AnswerSink): Promise<Ending> {
  if ('status' in outcome && NOT_EXECUTED.has(outcome.status)) return claim.free()
  switch (outcome.is) {
    case 'answered':
      return claim.keep(sink.answer)
    case 'unreachable':
    case 'overBudget':
    case 'bodyRefused':
      return claim.free()
    case 'browserGone':
      return outcome.sent === 'nothing' ? claim.free() : claim.finish({ is: 'unknown' })
    case 'withheld':
      return outcome.status === 401 ? claim.free() : claim.finish({ is: 'unknown' })
    case 'lost':
    case 'timeout':
    case 'cut':
      return claim.finish({ is: 'unknown' })
  }
}

/** The problem that the browser gets for a response whose body broke off. */
function brokenOff({ status, retryAfter, cause }: Extract<SentOutcome, { is: 'cut' }>): Problem {
  if (!NOT_EXECUTED.has(status)) return upstreamProblem({ is: 'lost', cause, responseBegan: true }, false)
  const isLimit = status !== 413
  return new Problem(isLimit ? 'rate_limited' : 'body_too_large', {
    detail: 'The trading service refused the call.',
    ...(retryAfter !== undefined && { headers: { 'retry-after': retryAfter } }),
    ...(retryAfter === undefined && isLimit && { retryAfterSeconds: 1 }),
    cause,
  })
}

/** The outcome of a call whose browser has left. */
function left(outcome: SentOutcome): Extract<ForwardOutcome, { is: 'browserGone' }> {
  if (outcome.is === 'browserGone') return outcome
  const status = 'status' in outcome ? outcome.status : 0
  const sent = outcome.is === 'unreachable' || outcome.is === 'overBudget' ? 'nothing' : 'whole'
  return { is: 'browserGone', sent, status, ...('cause' in outcome && { cause: outcome.cause }) }
}

function framed(content: Buffer | null): OutgoingBody {
  return { is: 'whole', content, headers: content === null ? [] : ['content-length', String(content.length)] }
}
