import { notify } from './errors.ts'
import { JUMP_MS, TICK_MS } from './times.ts'

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
