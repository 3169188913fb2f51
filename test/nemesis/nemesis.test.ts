import { readFileSync } from 'node:fs'
import { test } from 'tap'
import type { Plan } from './plan.ts'
import { planOf } from './schedule.ts'
import { run } from './run.ts'
import { summaryOf, timelineOf } from './timeline.ts'

const SEED = Number(process.env['SEED'] ?? 1)
const FOR_MS = 35_000
/** What every run of {@link FOR_MS} puts to the test: a promise about which a history says nothing cannot be broken. */
const ALWAYS = [
  'at-most-once',
  'ended-means-ended',
  'true-outcomes',
  'others-are-served',
  'ticks-are-true',
  'once-means-once',
  'records-are-true',
  'nothing-is-left',
  'silence-is-told',
  'ready-means-served',
]
/** A file with a plan, in place of that of the seed. */
const { PLAN } = process.env

await test(`No promise is broken by the faults of ${PLAN ?? `SEED=${SEED}`}`, async (t) => {
  const plan = PLAN === undefined ? planOf(SEED, FOR_MS) : (JSON.parse(readFileSync(PLAN, 'utf8')) as Plan)
  const result = await run(t, plan)
  const { violations, doubtful, judged, isVoid } = result
  t.comment(summaryOf(result))
  const timeline = timelineOf(result)
  if (timeline !== '') t.comment(timeline)
  t.same(
    violations.map(({ promise, violation }) => `${promise.name}: ${violation.seen}`),
    [],
  )
  const tested = new Set([...judged].flatMap(([{ name }, times]) => (times.length === 0 ? [] : [name])))
  // A plan of a file may be small, and a run that has failed ends early.
  if (PLAN === undefined && violations.length + doubtful.length === 0)
    t.same(
      ALWAYS.filter((name) => !tested.has(name)),
      [],
      'promises that were not put to the test',
    )
  if (isVoid) t.pass('what takes time', { skip: 'this machine was too busy' })
})
