import { notify } from './errors.ts'

const TICK_MS = 1000
/** A tick that comes so much too late, or too early, has seen the clock jump: the machine slept, or was set. */
const JUMP_MS = 4000
const listeners = new Set<(hasJumped: boolean) => void>()
let timer: ReturnType<typeof setInterval> | undefined

/** Calls the listener once a second. @returns what ends it */
export function onTick(listener: (hasJumped: boolean) => void): () => void {
  listeners.add(listener)
  let last = Date.now()
  timer ??= setInterval(() => {
    const gap = Date.now() - last
    last += gap
    notify(listeners, gap < 0 || gap > TICK_MS + JUMP_MS)
  }, TICK_MS)
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}
