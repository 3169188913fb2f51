import { test } from 'tap'
import { planOf } from './schedule.ts'
import { run } from './run.ts'
import { summaryOf, timelineOf } from './timeline.ts'

const SEED = Number(process.env['SEED'] ?? 1)
const FOR_MS = 35_000

await test(`No promise is broken by the faults of SEED=${SEED}`, async (t) => {
  const result = await run(t, planOf(SEED, FOR_MS))
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
