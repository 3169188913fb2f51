import { notify } from './errors.ts'
import { JUMP_MS, MAX_LATE_MS, TICK_MS } from './times.ts'

const listeners = new Set<(hasJumped: boolean) => void>()
let timer: ReturnType<typeof setInterval> | undefined

/**
 * Calls the listener once a second.
 * @returns a function that stops the calls
 */
export function onTick(listener: (hasJumped: boolean) => void): () => void {
  listeners.add(listener)
  let last = Date.now()
  timer ??= setInterval(() => {
    const gap = Date.now() - last
    last += gap
    notify(listeners, (listener) => listener(gap < 0 || gap > TICK_MS + JUMP_MS))
  }, TICK_MS)
  // No process in Node.js goes on for a question that nobody answers. That of an open link goes on for its socket.
  ;(timer as { unref?: () => void }).unref?.()
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

/** The time since a moment. A clock that was set back counts like one that was set forward, or a timeout would never end. */
export function elapsedMs(since: number): number {
  return Math.abs(Date.now() - since)
}

/** Waits for an answer. @returns whether the machine slept meanwhile: the answer may arrive before the next tick, or after it */
export function sleptDuring(answer: unknown): Promise<boolean> {
  let last = Date.now()
  const hasSlept = (): boolean => elapsedMs(last) > MAX_LATE_MS
  const stop = onTick(() => hasSlept() || (last = Date.now()))
  return Promise.resolve(answer).finally(stop).then(hasSlept)
}
