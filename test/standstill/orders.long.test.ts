import { test } from 'tap'
import { ordersDuringPauses, ordersInTheDark, type StandstillOptions } from '../support/sessions/standstill-world.ts'

const TRIES = Number(process.env['TRIES'] ?? 50)

for (const isCluster of [false, true]) {
  for (const isSuspended of [false, true]) {
    for (const hasOperators of [false, true]) {
      const options: StandstillOptions = { isCluster, isSuspended, hasOperators }
      await test(`nothing of a session that ended elsewhere is sent after a standstill: ${JSON.stringify(options)}`, (t) =>
        ordersInTheDark(t, options, TRIES))
    }
  }
}

for (const isSuspended of [false, true]) {
  await test(`no order is sent during a pause that was set while the process ${isSuspended ? 'was suspended' : 'was stopped'}`, (t) =>
    ordersDuringPauses(t, isSuspended, TRIES))
}
