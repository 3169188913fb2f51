import { readFileSync } from 'node:fs'
import { test } from 'tap'
import type { Plan } from './plan.ts'
import { planOf } from './schedule.ts'
import { run } from './run.ts'
import { summaryOf, timelineOf } from './timeline.ts'

const SEED = Number(process.env['SEED'] ?? 1)
const FOR_MS = 35_000
/** A file with a plan, in place of that of the seed. */
const { PLAN } = process.env

await test(`No promise is broken by the faults of ${PLAN ?? `SEED=${SEED}`}`, async (t) => {
  const plan = PLAN === undefined ? planOf(SEED, FOR_MS) : (JSON.parse(readFileSync(PLAN, 'utf8')) as Plan)
  const result = await run(t, plan)
  const { violations, isVoid } = result
  t.comment(summaryOf(result))
  const timeline = timelineOf(result)
  if (timeline !== '') t.comment(timeline)
  t.same(
    violations.map(({ promise, violation }) => `${promise.name}: ${violation.seen}`),
    [],
  )
  if (isVoid) t.pass('what takes time', { skip: 'this machine was too busy' })
})
