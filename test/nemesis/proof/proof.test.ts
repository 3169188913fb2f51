import { readFileSync } from 'node:fs'
import { test, type Test } from 'tap'
import type { Plan } from '../plan.ts'
import { ranApart, tellShrunk } from '../shrink-run.ts'
import type { Broken, Result } from '../run.ts'
import { summaryOf, timelineOf } from '../timeline.ts'
import { noteFinding, type Finding } from './findings.ts'
import { allPatches, type Patch } from './patch.ts'
import { patchedCheckout } from './patched-checkout.ts'
import { planFor } from './plan-for.ts'

const MINUTES = Number(process.env['MINUTES'] ?? 10)
const SEED = Number(process.env['SEED'] ?? 1)
/** The patches to try, by name. */
const PROOF = process.env['PROOF']?.split(',')
/** A file with the only plan to try. */
const PLAN = process.env['PLAN']
/** The first plan that breaks a promise is made smaller for so long. */
const SHRINK_MINUTES = Number(process.env['SHRINK_MINUTES'] ?? 0)

for (const patch of allPatches().filter(({ name }) => PROOF?.includes(name) ?? true)) {
  await test(`${patch.name}: ${patch.sentence}`, async (t) => {
    const folder = await patchedCheckout(t, patch)
    const finding = await searched(t, patch, folder)
    if (PLAN === undefined) noteFinding(patch.name, finding)
    t.ok(finding.by, `a broken promise is seen within ${MINUTES} minutes`)
  })
}

/** Tries seeds until a promise is broken by the patch, and not without it. */
async function searched(t: Test, { wishes }: Patch, checkout: string): Promise<Finding> {
  const begin = performance.now()
  const minutes = (): number => (performance.now() - begin) / 60_000
  let runs = 0
  for (let seed = SEED; minutes() < MINUTES; seed++) {
    const plan = PLAN === undefined ? planFor(seed, wishes) : (JSON.parse(readFileSync(PLAN, 'utf8')) as Plan)
    runs++
    const result = await ran(t, plan, checkout)
    const broken = brokenIn(result)
    const found = minutes()
    if (result === undefined || broken.length === 0) continue
    // On a busy machine the product as it is may miss a time limit, too.
    const without = new Set(brokenIn(await ran(t, plan)).map(kindOf))
    const by = broken.find((each) => !without.has(kindOf(each)))?.promise.name
    if (by !== undefined) {
      t.comment(await tellShrunk(t, result, SHRINK_MINUTES, checkout))
      return { by, seed, minutes: found, runs }
    }
    t.comment(`SEED=${seed} breaks the same promises without the patch`)
  }
  return { by: undefined, seed: undefined, minutes: minutes(), runs }
}

/** Runs a plan, and tells what it has found. */
async function ran(t: Test, plan: Plan, checkout?: string): Promise<Result | undefined> {
  const result = await ranApart(t, plan, checkout)
  if (result === undefined) return undefined
  t.comment(`${checkout === undefined ? 'without' : 'with'} the patch: ${summaryOf(result)}`)
  const timeline = timelineOf(result)
  if (timeline !== '') t.comment(timeline)
  return result
}

function brokenIn(result: Result | undefined): Broken[] {
  return [...(result?.violations ?? []), ...(result?.doubtful ?? [])]
}

/** What was seen, whoever it happened to and whenever; of a page only what it was told. */
function kindOf({ promise, violation: { seen } }: Broken): string {
  const told = / got (\w+) /.exec(seen)?.[1]
  return `${promise.name}: ${told ?? seen.replace(/^\w+: /, '').replaceAll(/\d+/g, '')}`
}
