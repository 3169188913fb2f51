import { type FeedRequest, type UpstreamMessage, frameOf, localAnswer } from '../wire/index.ts'
import type { Subscriber, Subscription } from './subscription.ts'

/** The names that `forget_all` certainly takes on the public socket. The streams of `proposal` are never shared. */
const KNOWN_TYPES: ReadonlySet<unknown> = new Set(['ticks', 'candles', 'proposal'])

/** Asks upstream for the browser alone. */
type Ask = (onAnswer: (message: UpstreamMessage) => void) => void

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
  const { browser } = subscriber
  const types = typesOf(request)
  const release = browser.hold()
  const answer = (frame: Buffer): void => {
    browser.answer(frame)
    release()
  }
  const endAll = (more: readonly unknown[]): void => {
    endWhenAnswered(subscriber, types, (ids) => answer(localAnswer(request, [...ids, ...more])))
  }
  if (ask === undefined) return endAll([])
  ask((message) => {
    if (message.errorCode === undefined) endAll(idsIn(message))
    else answer(frameOf(request.prefix, message.body))
  })
}

/** Whether upstream certainly takes these types, so that a browser without an own socket needs no answer of upstream's. */
export function isKnownForgetAll(request: FeedRequest): boolean {
  const types = typesOf(request)
  return types.length > 0 && types.every((type) => KNOWN_TYPES.has(type))
}

function typesOf({ fields }: FeedRequest): readonly unknown[] {
  return [fields.get('forget_all')].flat()
}

/**
 * Ends the browser's subscriptions of these types, each once it has its first answer, and then calls back with the ids that they
 * had. If one is refused, a request that has waited for it may have its turn, and the subscriptions of that end as well. What is lost
 * in the meantime is not named: the browser is about to be closed.
 */
function endWhenAnswered(
  { browser, subscriptions }: Subscriber,
  types: readonly unknown[],
  done: (ids: readonly string[]) => void,
): void {
  const ids: string[] = []
  const waiting = new Set<Subscription>()
  const proceed = (): void => {
    const more = [...subscriptions.values()].filter(
      (each) => each.isAttached && types.includes(each.stream.type) && !waiting.has(each),
    )
    if (more.length === 0 && waiting.size === 0) return done(ids)
    for (const each of more) waiting.add(each)
    for (const each of more) {
      each.afterAnswer((isServed) => {
        const { id, identity } = each.stream
        if (isServed && each.isAttached) {
          if (id !== undefined) ids.push(id)
          browser.sendConflated(identity)
          each.leave()
        }
        waiting.delete(each)
        proceed()
      })
    }
  }
  proceed()
}

function idsIn({ body }: UpstreamMessage): unknown[] {
  const { forget_all: ids } = JSON.parse(`{${body.toString()}`) as { forget_all?: unknown }
  return Array.isArray(ids) ? ids : []
}
