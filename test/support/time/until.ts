import { once, type EventEmitter } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'

/** The first pause between two checks, and the longest: a check that costs much, such as a scrape, is not to delay the rest. */
const POLL_MS = 5
const MAX_POLL_MS = 50
/** More than any single wait of a test takes on a slow machine; a caller that waits for more says so. */
const DEADLINE_MS = 20_000
/** For containers, failovers of Redis and balancers, which poll by the second, and for what starts several processes. */
const SLOW_DEADLINE_MS = 60_000

/**
 * Polls a condition that no event announces.
 * @param what names the condition in the error
 * @throws Error when the condition does not hold before the deadline
 */
export async function until(
  check: () => boolean | Promise<boolean>,
  what = String(check),
  deadlineMs = DEADLINE_MS,
): Promise<void> {
  const over = new AbortController()
  const poll = async (): Promise<void> => {
    for (let pauseMs = POLL_MS; !(await check()); pauseMs = Math.min(pauseMs * 1.1, MAX_POLL_MS))
      await delay(pauseMs, undefined, { signal: over.signal })
  }
  await within(poll(), what, deadlineMs).finally(() => over.abort())
}

/** Like {@link until}, with a deadline of a minute, for containers, failovers, balancers and several processes that start. */
export function untilSlow(check: () => boolean | Promise<boolean>, what = String(check)): Promise<void> {
  return until(check, what, SLOW_DEADLINE_MS)
}

/**
 * Waits for a promise, but not for ever.
 * @param what names the awaited event in the error
 * @throws Error when the promise is still pending at the deadline
 */
export async function within<Value>(promise: Promise<Value>, what: string, deadlineMs = DEADLINE_MS): Promise<Value> {
  // Made here, so that its stack shows the line of the test that waits.
  const late = new Error(`still waiting after ${deadlineMs / 1000} s: ${what}`)
  let timer: NodeJS.Timeout | undefined
  const deadline = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(late), deadlineMs)
  })
  try {
    return await Promise.race([promise, deadline])
  } finally {
    clearTimeout(timer)
  }
}

/** The next event of this name, like `once` of node:events, but not for ever. @throws Error at the deadline */
export function nextEvent(emitter: EventEmitter, name: string, deadlineMs = DEADLINE_MS): Promise<unknown[]> {
  return within(once(emitter, name), `no '${name}' event of a ${emitter.constructor.name}`, deadlineMs)
}
