import { localAnswer, rateLimitError } from './local-answers.ts'
import type { UpstreamMessage } from './dissect.ts'
import { frameOf } from './frame-of.ts'
import type { Member } from './member.ts'
import type { FeedRequest } from './parse-request.ts'
import type { Reads } from './reads.ts'
import type { Subscription } from './subscription.ts'

/** The names that `forget_all` certainly takes on the public socket. The streams of `proposal` are never shared. */
const KNOWN_TYPES: ReadonlySet<unknown> = new Set(['ticks', 'candles', 'proposal'])

/** Ends the browser's stream with this id, or that symbol of an array. @returns false if the browser has none */
export function forgetStream(member: Member, id: unknown): boolean {
  for (const subscription of member.subscriptions.values()) {
    if (!subscription.isServed || !subscription.ids.some((each) => each === id)) continue
    member.sendConflated(subscription.stream.conflationKey(String(id)))
    subscription.stream.forgetOne(subscription, String(id))
    return true
  }
  return false
}

/**
 * `forget_all`: ends the browser's streams of some types, whether shared or not, and answers with the ids of all of them. The
 * browser's later messages wait for that: a stream that it subscribes to anew may have the id that it had before.
 */
export function forgetAll(member: Member, request: FeedRequest, reads: Reads): void {
  const types: readonly unknown[] = [request.fields.get('forget_all')].flat()
  const isKnown = types.length > 0 && types.every((type) => KNOWN_TYPES.has(type))
  const isLocal = isKnown && member.own === undefined
  if (member.own !== undefined && !member.spend()) return member.answer(rateLimitError(request))
  const release = member.hold()
  const answer = (frame: Buffer): void => {
    member.answer(frame)
    release()
  }
  const concerned = [...new Set(member.subscriptions.values())].filter(({ stream }) => types.includes(stream.type))
  if (isLocal) return whenLeft(take(concerned), (ids) => answer(localAnswer(request, ids)))
  const answered = (message: UpstreamMessage): void => {
    if (message.errorCode !== undefined) return answer(frameOf(request.prefix, message.body))
    const present = concerned.flatMap((each) => (each.isAttached ? [each] : askedAgain(each)))
    whenLeft(take([...new Set(present)]), (ids) => answer(localAnswer(request, [...ids, ...idsIn(message)])))
  }
  if (member.own !== undefined) member.own.ask((reqId) => request.toUpstream(reqId), answered)
  else if (!reads.ask(member, request, answered)) release()
}

/** Takes subscriptions away from their browser. They still end if it leaves meanwhile. @returns those that it had until now */
function take(subscriptions: readonly Subscription[]): Subscription[] {
  const taken = subscriptions.filter(({ isAttached }) => isAttached)
  for (const subscription of taken) {
    subscription.releaseClaims()
    subscription.member.leaving.add(subscription)
  }
  return taken
}

/** Ends subscriptions, each once it has its first answer or an error. Then calls back with the ids that they had. */
function whenLeft(subscriptions: readonly Subscription[], done: (ids: string[]) => void): void {
  const ids: string[] = []
  let left = subscriptions.length
  if (left === 0) return done(ids)
  const end = (subscription: Subscription): void => {
    const { member, stream } = subscription
    const leave = (isServed: boolean): void => {
      for (const id of isServed ? subscription.ids : []) {
        ids.push(id)
        member.sendConflated(stream.conflationKey(id))
      }
      subscription.leave()
      member.leaving.delete(subscription)
      const next = isServed ? [] : take(askedAgain(subscription))
      left += next.length
      for (const each of next) end(each)
      if (--left === 0) done(ids)
    }
    subscription.afterAnswer((isServed) => {
      if (isServed) subscription.whenComplete(() => leave(true))
      else leave(false)
    })
  }
  for (const subscription of subscriptions) end(subscription)
}

/** What a browser has in place of a subscription that was refused: if it had asked twice, the second request is tried then. */
function askedAgain({ member, stream }: Subscription): Subscription[] {
  const found = new Set(stream.claims.map((claim) => member.subscriptions.get(claim)))
  return [...found].filter((each) => each !== undefined)
}

function idsIn({ body }: UpstreamMessage): unknown[] {
  const { forget_all: ids } = JSON.parse(`{${body.toString()}`) as { forget_all?: unknown }
  return Array.isArray(ids) ? ids : []
}
