import { test } from 'tap'
import { planOf } from './schedule.ts'
import { run, type Result } from './run.ts'
import { tellShrunk } from './shrink-run.ts'
import { FaultPromiseTable } from './table.ts'
import { summaryOf, timelineOf } from './timeline.ts'

const MINUTES = Number(process.env['MINUTES'] ?? 30)
const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
const FOR_MS = 60_000
/** A failing plan is made smaller for so long. */
const SHRINK_MINUTES = Number(process.env['SHRINK_MINUTES'] ?? 5)

await test(`No promise is broken by the faults of many seeds, for ${MINUTES} minutes from SEED=${SEED}`, async (t) => {
  const table = new FaultPromiseTable()
  const endsAt = performance.now() + MINUTES * 60_000
  let voids = 0
  for (let seed = SEED; performance.now() < endsAt; seed++) {
    let failed: Result | undefined
    await t.test(`SEED=${seed}`, async (t) => {
      const result = await run(t, planOf(seed, FOR_MS))
      const { violations, isVoid } = result
      t.comment(summaryOf(result))
      const timeline = timelineOf(result)
      if (timeline !== '') t.comment(timeline)
      t.same(
        violations.map(({ promise, violation }) => `${promise.name}: ${violation.seen}`),
        [],
      )
      if (isVoid) t.pass('what takes time', { skip: `void run ${++voids}: this machine was too busy` })
      table.add(result)
      if (violations.length > 0) failed = result
    })
    if (failed !== undefined) t.comment(await tellShrunk(t, failed, SHRINK_MINUTES))
  }
  t.comment(`${voids} runs were void for what takes time\n${table.toString()}`)
})
