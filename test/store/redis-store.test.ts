import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'tap'
import { StoreUnavailable } from '../../src/store/store.ts'
import { connectedOf, error, soon, storeOf } from '../support/redis/store-alone.ts'
import { clockAhead } from '../support/time/clock-ahead.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until } from '../support/time/until.ts'

await test('a store is there once it is connected, and tells that any key may have changed before', async (t) => {
  const { store, told, seen, log } = storeOf(t)
  t.equal(store.unavailableSince(), -Infinity)
  await t.rejects(store.read('k'), {
    name: 'StoreUnavailable',
    cause: { name: 'Unsent', cause: { message: 'the link to Redis is down or unhealthy' } },
  })
  t.same(seen(), ['failed: down'])
  t.equal(await store.facts(), undefined)
  await store.connected(5000)
  t.equal(store.unavailableSince(), undefined)
  t.same(told(), [undefined])
  t.match(log, [['info', {}, 'the session store is connected']])
  t.equal(store.staleMs, Infinity)
  t.equal(store.reportsBurials, true)
  t.same(store.warnings(), [])
  t.match(store.condition(), { share: 1, why: [] })
  t.ok(store.availableForMs('k') >= 0)
  t.match(await store.facts(), { sessions: 1 })
})

await test('who waits for the connection waits no longer than asked', async (t) => {
  const { store } = storeOf(t, 'redis://127.0.0.1:1')
  await store.connected(5)
  t.equal(store.unavailableSince(), -Infinity)
})

await test('a command is asked once, untracked where its key need not be watched, and each request is observed', async (t) => {
  const { store, world, sent, seen } = await connectedOf(t, undefined, { GET: null, PEXPIRETIME: -2 })
  t.equal(await store.read('k'), undefined)
  t.same(sent(), ['7000 GET k', '7000 PEXPIRETIME k'])
  t.same(seen(), ['asked'])
  world.script = () => [Buffer.from('v'), 7]
  t.same(await store.readUntracked('k'), { value: 'v', expiresAt: 7 })
  t.same(sent(), ['7000 CLIENT CACHING NO', '7000 EVAL'])
  t.same(await store.readMany([]), [])
  t.same([sent(), seen()], [[], ['asked']])
})

await test('a store tells of each change that it makes, even if the reply is lost, and of a key that is gone', async (t) => {
  const { store, world, told } = await connectedOf(t, undefined, { GET: null, PEXPIRETIME: -2 })
  await store.read('gone')
  t.same(told(), ['gone'])
  world.script = () => ['v', 7]
  t.match(await store.extend('there', 7), { value: 'v' })
  t.same(told(), [])
  world.script = () => 1
  await store.replace('changed', 'v', 'w', soon())
  t.same(told(), ['changed'])
  world.script = () => error('OOM')
  await t.rejects(store.replace('perhaps', 'v', 'w', soon()), StoreUnavailable)
  t.same(told(), ['perhaps'])
  await t.rejects(store.readUntracked('unknown'), StoreUnavailable)
  t.same(told(), [])
})

await test('what fails is observed by its kind', async (t) => {
  const ahead = clockAhead(t)
  const { store, world, seen } = await connectedOf(t)
  world.script = () => error('OOM')
  await t.rejects(store.replace('k', 'v', 'w', soon()), {
    name: 'StoreUnavailable',
    cause: { message: 'OOM that is why' },
  })
  t.same(seen(), ['refused: oom', 'failed: refused', 'asked'])
  world.script = () => error('NOPERM')
  await t.rejects(store.replace('k', 'v', 'w', soon()))
  t.same(seen(), ['failed: refused', 'asked'])
  ahead(1000)
  t.ok(store.availableForMs('k') >= 1000, 'these are no interruptions')
  world.script = () => new Error('the connection broke')
  await t.rejects(store.replace('k', 'v', 'w', soon()))
  t.same(seen(), ['failed: lost', 'asked'])
  t.ok(store.availableForMs('k') < 1000, 'it was interrupted')
})

await test('a reply that does not come in time makes the link unhealthy, and any key may have changed', async (t) => {
  const seconds = new HeldTimers(t, 'setTimeout', 1000)
  const { store, world, seen, told, log } = await connectedOf(t)
  const limit = new HeldTimers(t, 'setTimeout', 1500)
  world.script = () => new Promise(() => undefined)
  const late = store.replace('k', 'v', 'w', soon())
  late.catch(() => undefined)
  await turn()
  limit.run()
  await t.rejects(late, { name: 'StoreUnavailable', cause: { code: 'ETIMEDOUT' } })
  t.same(seen(), ['failed: timeout', 'asked'])
  t.same(told(), [undefined, 'k'])
  t.type(store.unavailableSince(), 'number')
  t.match(log.at(-1), ['warn', { reason: 'deadline' }])
  seconds.run()
  await until(() => store.unavailableSince() === undefined, 'a sign of life')
})

await test('an extension that Redis refuses is one of a write, and what is read is told all the same', async (t) => {
  const { store, world, seen, log } = await connectedOf(t)
  world.script = () => ['v', 7, 'MISCONF disk']
  t.match(await store.extend('k', 9), { value: 'v', expiresAt: 7 })
  t.same(seen(), ['asked', 'refused: misconf'])
  t.match(log.at(-1), ['warn', { reason: 'MISCONF' }, 'the session store refuses writes'])
  world.script = () => ['v', 7, 'odd text']
  t.match(await store.extend('k', 9), { value: 'v' })
  world.script = () => ['v', 7, null]
  t.match(await store.extend('k', 9), { value: 'v' })
  t.same(seen(), ['asked', 'asked'])
})

await test('a server that is no master, or not the one for a key, is left', async (t) => {
  for (const code of ['READONLY', 'MOVED']) {
    const { store, world, told, log } = await connectedOf(t)
    world.script = () => error(code)
    await t.rejects(store.replace('k', 'v', 'w', soon()), StoreUnavailable)
    t.ok(told().includes(undefined), code)
    t.ok(log.some((entry) => JSON.stringify(entry).includes(`"reason":"${code}"`)))
    await until(() => store.unavailableSince() === undefined)
  }
})

await test('changes that Redis reports are told, and each loss of the link says that any key may have changed', async (t) => {
  const { store, told, open, lose } = await connectedOf(t)
  open()[0]?.connection.emit('invalidate', 'k')
  t.same(told(), ['k'])
  lose(7000)
  t.same(told(), [undefined])
  t.type(store.unavailableSince(), 'number')
  await until(() => store.unavailableSince() === undefined)
  t.same(told(), [undefined], 'and once more when it is back')
})
