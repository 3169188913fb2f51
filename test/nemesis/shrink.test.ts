import { test } from 'tap'
import type { Plan } from './plan.ts'
import { planOf } from './schedule.ts'
import { shrunk } from './shrink.ts'

const isOver = (): boolean => false
const failing = async (): Promise<boolean> => true

await test('a failing plan is made as small as it can be, and still fails', async (t) => {
  const plan = planOf(7, 60_000)
  t.ok(plan.faults.length > 3, 'there is something to leave out')
  const needed = plan.faults[plan.faults.length - 2]
  let runs = 0
  const fails = async ({ users, faults, fleet, forMs }: Plan): Promise<boolean> => {
    runs++
    const fault = faults.find(({ seed }) => seed === needed?.seed)
    return fleet.instances > 1 && users.some(({ name }) => name === 'dan') && fault !== undefined && fault.at < forMs
  }
  const { users, pages, buyers, operators, faults, forMs, fleet } = await shrunk(plan, fails, isOver)
  t.same(
    users.map(({ name }) => name),
    ['dan'],
  )
  t.same([pages, buyers, operators], [[], [], []])
  t.same(faults, [{ ...needed, at: 2500 }])
  t.same(fleet.settings, {})
  t.equal(fleet.instances, 2)
  t.ok(forMs < 10_000, 'it is short')
  t.ok(runs < 60, `${runs} runs`)
})

await test('a plan that fails only as it is stays, and shrinking ends when its time is over', async (t) => {
  const plan = planOf(7, 60_000)
  t.equal(await shrunk(plan, async () => false, isOver), plan)
  t.not(await shrunk(plan, failing, isOver), plan)
  t.equal(await shrunk(plan, failing, () => true), plan, 'it was not begun')
})
