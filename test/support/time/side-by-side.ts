import tap, { type Test } from 'tap'

/**
 * Runs tests that wait for seconds, and compute little, beside each other.
 * @param tests by title. None may change what the process has only once, such as its clocks or timers
 */
export async function sideBySide(tests: Readonly<Record<string, (t: Test) => Promise<void>>>): Promise<void> {
  const all = Object.entries(tests)
  const { jobs } = tap
  tap.jobs = all.length
  await Promise.all(all.map(([title, run]) => tap.test(title, { buffered: true }, run)))
  // The tests of the next file that shares this process come one after another.
  tap.jobs = jobs
}
