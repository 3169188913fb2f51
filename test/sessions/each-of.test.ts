import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { eachOf } from '../../src/sessions/each-of.ts'

await test('64 items at once have their task, and all are over when it is', async (t) => {
  const gates = Array.from({ length: 70 }, () => Promise.withResolvers<void>())
  const begun: unknown[] = []
  let isOver = false
  const all = eachOf(gates, (gate) => (begun.push(gate), gate.promise)).then(() => (isOver = true))
  await setImmediate()
  t.equal(begun.length, 64)
  gates[5]?.resolve()
  await setImmediate()
  t.equal(begun.length, 65)
  for (const gate of gates.slice(0, -1)) gate.resolve()
  await setImmediate()
  t.same([begun.length, isOver], [70, false])
  gates.at(-1)?.resolve()
  await all
  t.same(begun, gates)
})

await test('a failure keeps no other item from its task, and the first one is told when all have run', async (t) => {
  const ran: number[] = []
  const items = Array.from({ length: 200 }, (_, at) => at)
  const all = eachOf(items, async (item) => {
    ran.push(item)
    if (item < 100) throw new Error(`failure ${item}`)
  })
  await t.rejects(all, { message: 'failure 0' })
  t.same(ran, items)
})
