import type { Test } from 'tap'
import { replace } from './replace.ts'

/** Both clocks of this process go on only when a test says so, by as much as it says. No timer runs because of that. */
export function stoppedClocks(t: Test): (ms: number) => void {
  let [monotonic, timeOfDay] = [Math.ceil(performance.now()), Date.now()]
  replace(t, performance, 'now', () => monotonic)
  replace(t, Date, 'now', () => timeOfDay)
  return (ms) => {
    monotonic += ms
    timeOfDay += ms
  }
}
