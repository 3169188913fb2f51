import { test } from 'tap'
import { ordersInTheDark } from '../support/sessions/standstill-world.ts'

await test('a stopped process without operators sends nothing of a session that was ended elsewhere meanwhile', (t) =>
  ordersInTheDark(t, { hasOperators: false }, 1))

await test('a process on a suspended machine sends nothing of a session that was ended elsewhere meanwhile', (t) =>
  ordersInTheDark(t, { hasOperators: true, isSuspended: true }, 1))

await test('a stopped process with a Cluster sends nothing of a session that was ended elsewhere meanwhile', (t) =>
  ordersInTheDark(t, { hasOperators: false, isCluster: true }, 1))
