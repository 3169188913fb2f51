import type { Test } from 'tap'

/** Sets the monotonic clock of this process ahead, by as much as a test says. No timer runs because of that. */
export function clockAhead(t: Test): (ms: number) => void {
  const now = performance.now.bind(performance)
  let aheadMs = 0
  t.intercept(performance, 'now', { value: () => now() + aheadMs })
  return (ms) => {
    aheadMs += ms
  }
}
