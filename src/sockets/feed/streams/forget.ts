import { type FeedRequest, type UpstreamMessage, frameOf, localAnswer } from '../wire/index.ts'
import type { Subscriber, Subscription } from './subscription.ts'

/** The names that `forget_all` certainly takes on the public socket. The streams of `proposal` are never shared. */
const KNOWN_TYPES: ReadonlySet<unknown> = new Set(['ticks', 'candles', 'proposal'])

/** Asks upstream for the browser alone. @returns false if a limit forbids it, and the browser has been told */
type Ask = (onAnswer: (message: UpstreamMessage) => void) => boolean

/** Ends the browser's stream with this id. @returns false if the browser has none */
export function forgetStream({ browser, subscriptions }: Subscriber, id: unknown): boolean {
  for (const subscription of subscriptions.values()) {
    const { isServed, stream } = subscription
    if (!isServed || stream.id === undefined || stream.id !== id) continue
    browser.sendConflated(stream.identity)
    subscription.leave()
    return true
  }
  return false
}

/**
 * `forget_all`: ends the browser's streams of some types, whether shared or not, and answers with the ids of all of them. The
 * browser's later messages wait for that: a stream that it subscribes to anew may have the id that it had before.
 * @param ask asks upstream, whose answer may have more ids. Undefined where it has nothing to say
 */
export function forgetAll(subscriber: Subscriber, request: FeedRequest, ask: Ask | undefined): void {
  const { browser, subscriptions } = subscriber
  const types = typesOf(request)
  const release = browser.hold()
  const answer = (frame: Buffer): void => {
    browser.answer(frame)
    release()
  }
  const concerned = [...subscriptions.values()].filter(({ stream }) => types.includes(stream.type))
  if (ask === undefined) return whenLeft(take(concerned), (ids) => answer(localAnswer(request, ids)))
  const isAsked = ask((message) => {
    if (message.errorCode !== undefined) return answer(frameOf(request.prefix, message.body))
    const present = concerned.flatMap((each) => (each.isAttached ? [each] : askedAgain(each)))
    whenLeft(take([...new Set(present)]), (ids) => answer(localAnswer(request, [...ids, ...idsIn(message)])))
  })
  if (!isAsked) release()
}

/** Whether upstream certainly takes these types, so that a browser without an own socket needs no answer of upstream's. */
export function isKnownForgetAll(request: FeedRequest): boolean {
  const types = typesOf(request)
  return types.length > 0 && types.every((type) => KNOWN_TYPES.has(type))
}

function typesOf({ fields }: FeedRequest): readonly unknown[] {
  return [fields.get('forget_all')].flat()
}

/** Takes subscriptions away from their browser. They still end if it leaves meanwhile. @returns those that it had until now */
function take(subscriptions: readonly Subscription[]): Subscription[] {
  const taken = subscriptions.filter(({ isAttached }) => isAttached)
  for (const subscription of taken) {
    subscription.release()
    subscription.subscriber.leaving.add(subscription)
  }
  return taken
}

/** Ends subscriptions, each once it has its first answer or an error. Then calls back with the ids that they had. */
function whenLeft(subscriptions: readonly Subscription[], done: (ids: string[]) => void): void {
  const ids: string[] = []
  let left = subscriptions.length
  if (left === 0) return done(ids)
  const end = (subscription: Subscription): void => {
    const { subscriber, stream } = subscription
    subscription.afterAnswer((isServed) => {
      if (isServed && stream.id !== undefined) {
        ids.push(stream.id)
        subscriber.browser.sendConflated(stream.identity)
      }
      subscription.leave()
      subscriber.leaving.delete(subscription)
      const next = isServed ? [] : take(askedAgain(subscription))
      left += next.length
      for (const each of next) end(each)
      if (--left === 0) done(ids)
    })
  }
  for (const subscription of subscriptions) end(subscription)
}

/** What a browser has in place of a subscription that was refused: if it had asked twice, the second request is tried then. */
function askedAgain({ subscriber, stream }: Subscription): Subscription[] {
  const found = subscriber.subscriptions.get(stream.identity)
  return found === undefined ? [] : [found]
}

function idsIn({ body }: UpstreamMessage): unknown[] {
  const { forget_all: ids } = JSON.parse(`{${body.toString()}`) as { forget_all?: unknown }
  return Array.isArray(ids) ? ids : []
}
