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
  const { browser, lastNumber } = subscriber
  const types = typesOf(request)
  const release = browser.hold()
  const answer = (frame: Buffer): void => {
    browser.outbox.answer(frame)
    release()
  }
  const endAll = (more: readonly unknown[]): void => {
    endWhenAnswered(subscriber, types, lastNumber, (ids) => answer(localAnswer(request, [...ids, ...more])))
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
 * otherwise, an earlier request of the browser for the same may take its place, and ends too. What is lost in the meantime is not
 * named: the browser is about to be closed. Nor is a subscription named that has no answer in time, and so no id: it ends with its
 * first answer, and so does an earlier request that still waits for it.
 * @param upTo the number of the last request that is concerned. Once a `forget_all` has waited for ten seconds, the browser may
 *   subscribe to others, which go on
 */
function endWhenAnswered(
  subscriber: Subscriber,
  types: readonly unknown[],
  upTo: number,
  done: (ids: readonly string[]) => void,
): void {
  const ids = new Set<string>()
  const waiting = new Set<Subscription>()
  let isOver = false
  const finish = (): void => {
    isOver = true
    clearTimeout(timer)
    subscriber.forgetUnanswered(types, upTo)
    done([...ids])
  }
  const timer = setTimeout(finish, UNANSWERED_MS).unref()
  const isConcerned = (each: Subscription): boolean =>
    types.includes(each.stream.spec.type) && each.number <= upTo && each.isAttached && !each.isForgotten
  const proceed = (): void => {
    if (isOver) return
    const more = [...subscriber.subscriptions.values()].filter((each) => isConcerned(each) && !waiting.has(each))
    if (more.length === 0 && waiting.size === 0) return finish()
    for (const each of more) waiting.add(each)
    for (const each of more) {
      each.afterAnswer((isServed) => {
        waiting.delete(each)
        if (isServed && each.isAttached) {
          if (each.stream.id !== undefined) ids.add(each.stream.id)
          each.forget()
          // Before the browser's later requests for the same, which have waited behind this.
          if (waiting.size === 0) return proceed()
        }
        // An earlier request that waits for the same has its turn first.
        queueMicrotask(proceed)
      })
    }
  }
  proceed()
}

function idsIn({ body }: UpstreamMessage): unknown[] {
  const { forget_all: ids } = JSON.parse(`{${body.toString()}`) as { forget_all?: unknown }
  return Array.isArray(ids) ? ids : []
}
