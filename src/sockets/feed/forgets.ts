import { localAnswer, rateLimitError } from './local-answers.ts'
import type { UpstreamMessage } from './dissect.ts'
import { frameOf } from './frame-of.ts'
import type { Member } from './member.ts'
import type { FeedRequest } from './parse-request.ts'
import type { Reads } from './reads.ts'
import { isBare } from './services.ts'
import type { Subscription } from './subscription.ts'

/** The names that `forget_all` certainly takes on the public socket. The streams of `proposal` are never shared. */
const KNOWN_TYPES: ReadonlySet<unknown> = new Set(['ticks', 'candles', 'proposal'])
/** What a request costs until the streams that it ends have had their first answer. */
const BYTES_PER_REQUEST = 4096

/** Ends the browser's stream with this id, or its part. @returns false if the browser has none */
export function forgetStream(member: Member, id: unknown): boolean {
  for (const subscription of member.subscriptions.values()) {
    if (!subscription.isServed || !subscription.ids.some((each) => each === id)) continue
    member.sendConflated(subscription.stream.conflationKey(String(id)))
    subscription.stream.forgetOne(subscription, String(id))
    return true
  }
  return false
}

/** `forget_all`: ends the browser's streams of some types, whether shared or not, and answers with the ids of all of them. */
export function forgetAll(member: Member, request: FeedRequest, reads: Reads): void {
  const types: readonly unknown[] = [request.fields.get('forget_all')].flat()
  const isKnown = isBare(request.fields) && types.length > 0 && types.every((type) => KNOWN_TYPES.has(type))
  if (isKnown && member.own === undefined) {
    return whenLeft(member, takeAll(member, types), (ids) => member.answer(localAnswer(request, ids)))
  }
  if (member.own !== undefined && !member.spend()) return member.answer(rateLimitError(request))
  // The next request of the browser may be for one of these streams again.
  const left = isKnown ? takeAll(member, types) : undefined
  const answered = (answer: UpstreamMessage): void => {
    if (answer.errorCode !== undefined) return member.answer(frameOf(request.prefix, answer.body))
    whenLeft(member, left ?? takeAll(member, types), (ids) => {
      member.answer(localAnswer(request, [...ids, ...idsIn(answer)]))
    })
  }
  if (member.own === undefined) reads.ask(member, request, answered)
  else member.own.ask((reqId) => request.toUpstream(reqId), answered)
}

/** Takes the subscriptions of some types away from a browser. */
function takeAll(member: Member, types: readonly unknown[]): Subscription[] {
  const taken = new Set([...member.subscriptions.values()].filter(({ stream }) => types.includes(stream.type)))
  for (const subscription of taken) {
    subscription.releaseClaims()
    const { ids, stream } = subscription
    if (subscription.isServed) for (const id of ids) member.sendConflated(stream.conflationKey(id))
  }
  return [...taken]
}

/** Ends subscriptions, those without a first answer after it. Then calls back with the ids that they had. */
function whenLeft(member: Member, subscriptions: readonly Subscription[], done: (ids: string[]) => void): void {
  const ids: string[] = []
  let left = subscriptions.length
  if (left === 0) return done(ids)
  member.awaits(BYTES_PER_REQUEST)
  for (const subscription of subscriptions) {
    const leave = (isServed: boolean): void => {
      if (isServed) ids.push(...subscription.ids)
      subscription.leave()
      if (--left > 0) return
      member.awaitsNoMore(BYTES_PER_REQUEST)
      done(ids)
    }
    subscription.afterAnswer((isServed) => {
      if (isServed) subscription.whenComplete(() => leave(true))
      else leave(false)
    })
  }
}

function idsIn({ body }: UpstreamMessage): unknown[] {
  const { forget_all: ids } = JSON.parse(`{${body.toString()}`) as { forget_all?: unknown }
  return Array.isArray(ids) ? ids : []
}
