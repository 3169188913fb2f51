import { readFileSync } from 'node:fs'
import { test, type Test } from 'tap'
import type { Plan } from '../plan.ts'
import { planOf } from '../schedule.ts'
import type { ProductPromise } from '../promise.ts'
import { run, type Result } from '../run.ts'
import { summaryOf, timelineOf } from '../timeline.ts'
import { noteFinding, type Finding } from './findings.ts'
import { allPatches, type Patch, type Wishes } from './patch.ts'
import { patchedServer } from './patched-server.ts'

const MINUTES = Number(process.env['MINUTES'] ?? 10)
const SEED = Number(process.env['SEED'] ?? 1)
/** The patches to try, by name. */
const PROOF = process.env['PROOF']?.split(',')
/** A file with the only plan to try. */
const PLAN = process.env['PLAN']
const FOR_MS = 35_000

for (const patch of allPatches().filter(({ name }) => PROOF?.includes(name) ?? true)) {
  await test(`${patch.name}: ${patch.sentence}`, async (t) => {
    const { main, remove } = patchedServer(patch)
    t.teardown(remove)
    const finding = await searched(t, patch, main)
    if (PLAN === undefined) noteFinding(patch.name, finding)
    t.ok(finding.by, `a broken promise is seen within ${MINUTES} minutes`)
  })
}

/** Tries seeds until a promise is broken by the patch, and not without it. */
async function searched(t: Test, { wishes }: Patch, main: string): Promise<Finding> {
  const begin = performance.now()
  const minutes = (): number => (performance.now() - begin) / 60_000
  let runs = 0
  for (let seed = SEED; minutes() < MINUTES; seed++) {
    const plan = PLAN === undefined ? planFor(seed, wishes) : (JSON.parse(readFileSync(PLAN, 'utf8')) as Plan)
    runs++
    const broken = brokenIn(await ran(t, plan, main))
    const found = minutes()
    const certain = broken.find(({ isTimed }) => !isTimed)
    if (certain !== undefined) return { by: certain.name, seed, minutes: found, runs }
    if (broken.length === 0) continue
    // On a busy machine the product as it is may miss a time limit, too.
    const without = brokenIn(await ran(t, plan, undefined))
    const by = broken.find((each) => !without.includes(each))?.name
    if (by !== undefined) return { by, seed, minutes: found, runs }
    t.comment(`SEED=${seed} breaks the same promises without the patch`)
  }
  return { by: undefined, seed: undefined, minutes: minutes(), runs }
}

function brokenIn({ violations, doubtful }: Result): ProductPromise[] {
  return [...violations, ...doubtful].map(({ promise }) => promise)
}

/** Runs a plan in a test of its own, with which all of it ends. */
async function ran(t: Test, plan: Plan, main: string | undefined): Promise<Result> {
  const { promise, resolve, reject } = Promise.withResolvers<Result>()
  promise.catch(() => undefined)
  await t.test(`SEED=${plan.seed} ${main === undefined ? 'without' : 'with'} the patch`, async (t) => {
    const running = run(t, plan, main)
    running.then(resolve, reject)
    const result = await running
    t.comment(summaryOf(result))
    t.comment(timelineOf(result))
    t.pass('it ran')
  })
  return promise
}

/** The plan of a seed, as far as a patch has no wishes. */
function planFor(seed: number, { fleet, faults, forMs = FOR_MS }: Wishes): Plan {
  const plan = planOf(seed, forMs)
  const chosen =
    faults === undefined
      ? plan.faults
      : plan.faults.flatMap((fault) => {
          const name = faults[fault.seed % faults.length]
          return name === undefined ? [] : [{ ...fault, name }]
        })
  const settings = { ...plan.fleet.settings, ...fleet?.settings }
  return { ...plan, fleet: { ...plan.fleet, ...fleet, settings }, faults: chosen }
}
