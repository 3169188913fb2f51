import { type FeedRequest, type UpstreamMessage, frameOf, localAnswer } from '../wire/index.ts'
import type { Subscriber, Subscription } from './subscription.ts'

/** The names that `forget_all` certainly takes on the public socket. The streams of `proposal` are never shared. */
const KNOWN_TYPES: ReadonlySet<unknown> = new Set(['ticks', 'candles', 'proposal'])

/** How long `forget_all` waits for first answers that have not come: a symbol may have no price for days. */
const UNANSWERED_MS = 5000

/** Asks upstream the same for the browser alone. */
type AskUpstream = (onAnswer: (message: UpstreamMessage) => void) => void

/**
 * `forget_all`: ends the browser's streams of some types, whether shared or not, and answers with the ids of all of them. The
 * browser's later messages wait for that: a stream that it subscribes to anew may have the id that it had before.
 * @param ask asks upstream, whose answer may have more ids. Undefined where it has nothing to say
 */
export function forgetAll(subscriber: Subscriber, request: FeedRequest, ask: AskUpstream | undefined): void {
  const { browser, subscriptions } = subscriber
  const types = typesOf(request)
  const release = browser.hold()
  const answer = (frame: Buffer): void => {
    browser.outbox.answer(frame)
    release()
  }
  // Once this has waited for ten seconds, the browser may subscribe to others, which go on.
  const concerned = [...subscriptions.values()].filter(({ stream }) => types.includes(stream.spec.type))
  const identities = concerned.map(({ identity }) => identity)
  const endAll = (more: readonly unknown[]): void => {
    endWhenAnswered(subscriber, identities, (ids) => answer(localAnswer(request, [...ids, ...more])))
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
 * Ends subscriptions, each once it has its first answer, and then calls back with the ids that they had. If one is refused, or ended
 * otherwise, the browser's next request for the same may have taken its place: all subscriptions of that request end. What is lost in
 * the meantime is not named: the browser is about to be closed. Nor is a subscription named that has no answer in time, and so no id:
 * it ends with its first answer.
 */
function endWhenAnswered(
  { browser, subscriptions }: Subscriber,
  identities: readonly string[],
  done: (ids: readonly string[]) => void,
): void {
  const ids: string[] = []
  const waiting = new Set<Subscription>()
  let isOver = false
  const finish = (): void => {
    isOver = true
    clearTimeout(timer)
    for (const each of waiting) each.endsWhenServed = true
    done(ids)
  }
  const timer = setTimeout(finish, UNANSWERED_MS).unref()
  const proceed = (asked: readonly string[]): void => {
    const found = new Set(asked.flatMap((identity) => subscriptions.get(identity)?.together ?? []))
    const more = [...found].filter((each) => each.isAttached && !each.endsWhenServed && !waiting.has(each))
    if (more.length === 0 && waiting.size === 0) return finish()
    for (const each of more) waiting.add(each)
    for (const each of more) {
      const { stream, identity } = each
      const settled = (next: readonly string[]): void => {
        waiting.delete(each)
        if (!isOver) proceed(next)
      }
      each.afterAnswer((isServed) => {
        // A request that waits for the same has its turn first.
        if (!isServed || !each.isAttached) return queueMicrotask(() => settled([identity]))
        if (stream.id !== undefined) ids.push(stream.id)
        browser.outbox.sendConflated(identity)
        each.leave()
        settled([])
      })
    }
  }
  proceed(identities)
}

function idsIn({ body }: UpstreamMessage): unknown[] {
  const { forget_all: ids } = JSON.parse(`{${body.toString()}`) as { forget_all?: unknown }
  return Array.isArray(ids) ? ids : []
}
