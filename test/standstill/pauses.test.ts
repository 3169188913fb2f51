import { test } from 'tap'
import { ordersDuringPauses } from '../support/sessions/standstill-world.ts'

await test('a process that was stopped sends no order during a pause that was set meanwhile', (t) =>
  ordersDuringPauses(t, false, 1))

await test('a process on a machine that was suspended sends no order during a pause that was set meanwhile', (t) =>
  ordersDuringPauses(t, true, 1))
