import { test } from 'tap'
import { planOf } from '../schedule.ts'
import { planFor } from './plan-for.ts'

await test('the plan of a patch has its faults alone, each for as long as it says or usually lasts', (t) => {
  const names = ['half-open-sockets', 'stopped-instance']
  const { faults, fleet, operators, forMs } = planFor(3, { faults: names, forMs: 60_000, operators: 2 })
  t.same([forMs, fleet.redis, operators.length], [60_000, 'single', 2])
  t.ok(faults.length > 3)
  for (const { name, at, forMs: lastsMs } of faults) {
    t.ok(names.includes(name))
    const [least, most] = name === 'half-open-sockets' ? [3000, 20_000] : [1500, 5000]
    t.ok(lastsMs <= most && (lastsMs >= least || at + lastsMs === 60_000), `${name} lasts ${lastsMs} ms`)
  }
  const longer = planFor(3, { faults: names, lastsMs: 7000, forMs: 60_000 }).faults
  t.ok(longer.every(({ at, forMs: lastsMs }) => lastsMs === Math.min(7000, 60_000 - at)))
  for (const [nth, { at }] of longer.slice(1).entries())
    t.ok(at >= (longer[nth]?.at ?? 0) + 9000, 'one after the other')
  t.same(planFor(3, { faults: [] }).faults, [])
  t.equal(planFor(3, { users: 10 }).users.length, 10)
  t.same(planFor(3, {}).faults, planOf(3, 35_000).faults)
  t.end()
})

await test('faults that come together choose by the same numbers', (t) => {
  const names = ['slow-upstream', 'stopped-instance']
  const { faults } = planFor(3, { faults: names, isTogether: true })
  t.ok(faults.length >= 4)
  for (const [nth, first] of faults.entries()) {
    if (nth % 2 > 0) continue
    const second = faults[nth + 1]
    t.same([first.name, second?.name], names)
    t.same([second?.seed, second?.at], [first.seed, first.at + 600])
  }
  t.end()
})
