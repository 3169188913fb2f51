import type { Test } from 'tap'
import { followStoreClock } from '../../../src/time/store-time.ts'
import { replace } from './replace.ts'

/** Sets the monotonic clock of this process ahead, by as much as a test says. No timer runs because of that. */
export function clockAhead(t: Test): (ms: number) => void {
  return ahead(t, performance)
}

/** Sets the time of day ahead, or back, by as much as a test says: here and at the store. No timer runs because of that. */
export function timeAhead(t: Test): (ms: number) => void {
  const move = wrongClock(t)
  return (ms) => {
    move(ms)
    t.teardown(followStoreClock(() => Date.now()))
  }
}

/** Sets the clock of this machine ahead, or back, by as much as a test says; that of the store stays as it is. */
export function wrongClock(t: Test): (ms: number) => void {
  return ahead(t, Date)
}

function ahead(t: Test, clock: { now(): number }): (ms: number) => void {
  const now = clock.now.bind(clock)
  let aheadMs = 0
  replace(t, clock, 'now', () => now() + aheadMs)
  return (ms) => {
    aheadMs += ms
  }
}
