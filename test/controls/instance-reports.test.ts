import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { InstanceReports } from '../../src/controls/instance-reports.ts'
import { CONTROLLED_KEY } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import type { SessionIndex } from '../../src/store/session-index.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { clockAhead, timeAhead } from '../support/time/clock-ahead.ts'
import { replace } from '../support/time/replace.ts'

const POLL_MS = 300

/** An index that notes what is added to it and removed. */
async function counted() {
  const index = await new MemoryStore().openIndex()
  const added: Parameters<SessionIndex['add']>[] = []
  const removed: unknown[] = []
  const world = { before: async (): Promise<void> => undefined }
  const counting: SessionIndex = {
    ...index,
    async add(...report) {
      await world.before()
      added.push(report)
      return index.add(...report)
    },
    async remove(...args) {
      removed.push(args)
      await world.before()
      return index.remove(...args)
    },
  }
  return { index, counting, added, removed, world }
}

await test('an instance that polls is listed at every moment, by a report in ten seconds; one that is gone is not, half a minute later', async (t) => {
  const moves = [timeAhead(t), clockAhead(t)]
  const { index, counting, added } = await counted()
  const [polls, gone] = [new InstanceReports(counting, 'polls'), new InstanceReports(index, 'gone')]
  const listed = async (): Promise<string[]> => (await polls.list()).map(({ instance }) => instance).sort()
  await gone.report(1, 'the document', Date.now())
  for (let passedMs = 0; passedMs < 35_000; passedMs += POLL_MS) {
    await polls.report(1, 'the document', Date.now())
    const names = await listed()
    // The clock goes on, too, so which one the last seconds belong to depends on the machine.
    if (passedMs < 27_000 || passedMs >= 30_000)
      t.same(names, passedMs < 30_000 ? ['gone', 'polls'] : ['polls'], `after ${passedMs} ms`)
    for (const move of moves) move(POLL_MS)
  }
  t.equal(added.length, 4)
})

await test('a report is due as soon as the version is another one, or the store has another document, and not before', async (t) => {
  const { counting, added } = await counted()
  const reports = new InstanceReports(counting, 'one')
  for (const [version, stored, expected] of [
    [1, '', 1],
    [1, '', 1],
    [1, 'a document', 2],
    [2, 'a document', 3],
    [2, 'a document', 3],
  ] as const) {
    await reports.report(version, stored, Date.now())
    t.equal(added.length, expected)
  }
})

await test('an instance reports ten seconds after its last report, not sooner', async (t) => {
  let now = 5000
  replace(t, performance, 'now', () => now)
  const { counting, added } = await counted()
  const reports = new InstanceReports(counting, 'one')
  await reports.report(1, 'a document', Date.now())
  now += 9999
  await reports.report(1, 'a document', Date.now())
  t.equal(added.length, 1)
  now += 1
  await reports.report(1, 'a document', Date.now())
  t.equal(added.length, 2)
})

await test('a list says of each instance which version it obeyed, and when it said so', async (t) => {
  const { index, counting, added } = await counted()
  const reports = new InstanceReports(counting, 'one')
  const now = Date.now()
  await reports.report(7, 'a document', now)
  const [key, { id = '', expiresAt = 0, value = '' } = {}, after] = added[0] ?? []
  t.same([key, value, expiresAt, after], [CONTROLLED_KEY, '7@one', now + 30_000, 0])
  t.match(id, /^[\w-]{12}$/)
  t.strictSame(await reports.list(), [{ instance: 'one', version: 7, seenAt: now }])
  await reports.report(8, 'a document', now)
  await new InstanceReports(index, 'other').report(9, 'a document', now)
  t.match((await reports.list()).map(({ instance, version }) => `${instance} ${version}`).sort(), ['one 8', 'other 9'])
  const nameless = { ...index, list: async () => [{ id: 'x', value: '3', expiresAt: now, addedAt: 0 }] }
  t.match(await new InstanceReports(nameless, 'one').list(), [{ instance: '', version: 3 }])
})

await test('a report that fails rejects, and is made again by the next', async (t) => {
  const { counting, added, world } = await counted()
  const reports = new InstanceReports(counting, 'one')
  world.before = () => Promise.reject(new StoreUnavailable('away'))
  await t.rejects(reports.report(1, 'a document', Date.now()), StoreUnavailable)
  world.before = async () => undefined
  await reports.report(1, 'a document', Date.now())
  t.equal(added.length, 1)
})

await test('reports of the same moment come one after the other, so that the last version stays and none is made twice', async (t) => {
  const { counting, added, world } = await counted()
  const reports = new InstanceReports(counting, 'one')
  const gate = Promise.withResolvers<void>()
  let begun = 0
  world.before = () => (begun++, gate.promise)
  const all = [1, 1, 2].map((version) => reports.report(version, 'a document', Date.now()))
  await setImmediate()
  t.equal(begun, 1)
  gate.resolve()
  await Promise.all(all)
  t.same(
    added.map(([, { value }]) => value),
    ['1@one', '2@one'],
  )
})

await test('an instance that closes takes its report back, and makes no other, even one that was asked for before', async (t) => {
  const { counting, added, removed, world } = await counted()
  const reports = new InstanceReports(counting, 'one')
  await reports.report(1, 'a document', Date.now())
  const gate = Promise.withResolvers<void>()
  world.before = () => gate.promise
  const late = reports.report(2, 'a document', Date.now())
  await setImmediate()
  const queued = reports.report(3, 'a document', Date.now())
  const removal = Promise.withResolvers<void>()
  let isClosed = false
  const closed = reports.close().then(() => (isClosed = true))
  await setImmediate()
  t.same(removed, [], 'it waits for the report that is under way')
  world.before = () => removal.promise
  gate.resolve()
  await Promise.all([late, queued])
  await setImmediate()
  t.same([removed.length, isClosed], [1, false], 'it has not closed until the report is gone')
  removal.resolve()
  await closed
  await reports.report(4, 'a document', Date.now())
  t.same(
    added.map(([, { value }]) => value),
    ['1@one', '2@one'],
  )
  t.same(removed, [[CONTROLLED_KEY, [added[0]?.[1].id]]])
  t.same(await reports.list(), [])
})

await test('without the store an instance closes all the same', async (t) => {
  const { counting, world } = await counted()
  const reports = new InstanceReports(counting, 'one')
  world.before = () => Promise.reject(new StoreUnavailable('away'))
  await t.rejects(reports.report(1, 'a document', Date.now()))
  await t.resolves(reports.close())
})
