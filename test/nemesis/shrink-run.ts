import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Plan } from './plan.ts'
import { run, type Result } from './run.ts'
import { shrunk } from './shrink.ts'
import { timelineOf } from './timeline.ts'

/** A smaller plan fails if one of so many runs breaks the same promise: times of a real machine differ. */
const TRIES = 2
const MINUTE_MS = 60_000

/**
 * Makes the plan of a failing run smaller, writes it to a file of the system's temporary folder, and tells how to run it again, with
 * the timeline of its last failing run. Empty if the run has not failed, or no time is given.
 * @param checkout the folder of the product, unless it is this repository
 */
export async function tellShrunk(t: Test, result: Result, minutes: number, checkout?: string): Promise<string> {
  const broken = [...result.violations, ...result.doubtful][0]?.promise
  if (broken === undefined || minutes === 0) return ''
  let last = result
  const stillFails = async (plan: Plan): Promise<boolean> => {
    for (let tries = 0; tries < TRIES; tries++) {
      const again = await ranApart(t, plan, checkout)
      if (again === undefined || ![...again.violations, ...again.doubtful].some(({ promise }) => promise === broken))
        continue
      last = again
      return true
    }
    return false
  }
  const endsAt = performance.now() + minutes * MINUTE_MS
  const plan = await shrunk(result.plan, stillFails, () => performance.now() > endsAt)
  const file = join(tmpdir(), `nemesis-plan-${plan.seed}.json`)
  writeFileSync(file, JSON.stringify(plan, undefined, 2))
  const { faults, users, forMs } = plan
  const size = `${faults.length} faults, ${users.length} users, ${forMs / 1000} s`
  return `Smaller (${size}): PLAN=${file} npm test test/nemesis/nemesis.test.ts\n${timelineOf(last)}`
}

/** Runs a plan in a test of its own, with which all of it ends. Undefined if it could not be run. */
export async function ranApart(t: Test, plan: Plan, checkout?: string): Promise<Result | undefined> {
  let result: Result | undefined
  await t.test(`SEED=${plan.seed}, ${plan.faults.length} faults, ${plan.users.length} users`, async (t) => {
    result = await run(t, plan, checkout)
    t.pass('it ran')
  })
  return result
}
