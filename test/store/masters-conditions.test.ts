import { ErrorReply } from '@redis/client'
import { test, type Test } from 'tap'
import { ADVICE, explained } from '../../src/store/servers/causes.ts'
import type { MasterReport } from '../../src/store/servers/master-probe.ts'
import { Masters } from '../../src/store/servers/masters.ts'
import { NEEDS } from '../../src/store/servers/rights.ts'
import { replace } from '../support/time/replace.ts'
import { standstill } from '../../src/time/standstill.ts'

const SERVES: MasterReport = { refusal: undefined, refused: [], clock: undefined }
const SILENT: MasterReport = { ...SERVES, refusal: 'ETIMEDOUT' }
const FULL: MasterReport = { ...SERVES, refusal: 'OOM' }

/** The masters of a link, what they have logged and done, and the health of the link. */
function mastersOf(t: Test, names = ['one', 'other']) {
  const world = { log: [] as unknown[][], present: new Set(names), holder: 'one' }
  const note =
    (kind: string) =>
    (...args: unknown[]): void =>
      void world.log.push([kind, ...args])
  const health = {
    downSince: undefined as number | undefined,
    downReason: undefined as string | undefined,
    healthyForMs: 77,
    noteAlive: note('alive'),
    noteErrorCode: note('code'),
  }
  const link = {
    masterNames: () => world.present,
    masterOf: () => masterNamed(world.holder),
    probe: note('probe'),
  }
  const masters = new Masters(link, health, { error: note('error'), warn: note('warn'), info: note('info') })
  t.teardown(() => masters.clock.close())
  return { masters, world, health, logged: () => world.log.splice(0) }
}

const masterNamed = (name: string) => ({ name, options: {}, owns: () => true })

/** The report of a master whose clock is ahead. */
const clockOf = (aheadMs: number) => {
  const at = performance.now()
  return { ...SERVES, clock: { time: Date.now() + aheadMs, sentAt: at, receivedAt: at } }
}

/** A connection to a master that tells the time and what it refuses, or fails. */
const connection = (reply: unknown) =>
  ({
    isReady: true,
    eval: () => (reply instanceof Error ? Promise.reject(reply) : Promise.resolve(reply)),
    ping: () => Promise.resolve('PONG'),
  }) as never

await test('a store whose masters were not asked yet serves, and so does one that is full', (t) => {
  const { masters, health } = mastersOf(t, ['one'])
  t.match(masters.condition, { share: 1, why: [] })
  t.same([masters.unavailableSince, masters.availableForMs('key'), masters.warnings()], [undefined, 0, []])
  replace(t, performance, 'now', () => 5000)
  masters.note('one', FULL)
  replace(t, performance, 'now', () => 6000)
  masters.note('one', FULL)
  t.match(masters.condition, { share: 1, why: [] })
  t.equal(masters.availableForMs('key'), 77)
  t.same(masters.warnings(), [`the session store refuses writes (OOM): ${ADVICE['OOM']}`])
  health.healthyForMs = 2000
  t.equal(masters.availableForMs('key'), 1000)
  t.end()
})

await test('a failure interrupts the master of its key alone, and one that has taken its place begins anew', (t) => {
  const { masters, world, health } = mastersOf(t, ['one', 'other'])
  health.healthyForMs = 100_000
  const at = (now: number): void => replace(t, performance, 'now', () => now)
  const available = (name: string): number => ((world.holder = name), masters.availableForMs('key'))
  const both = (): number[] => ['one', 'other'].map(available)
  const fail = (how: () => unknown): void => ((world.holder = 'one'), void how())
  at(1000)
  for (const name of ['one', 'other']) masters.note(name, SERVES)
  at(2000)
  for (const name of ['one', 'other']) masters.note(name, SERVES)
  t.same(both(), [1000, 1000])
  for (const code of [
    'READONLY',
    'MASTERDOWN',
    'LOADING',
    'MISCONF',
    'NOREPLICAS',
    'BUSY',
    'CLUSTERDOWN',
    'TRYAGAIN',
  ]) {
    at(performance.now() + 100)
    fail(() => masters.noteErrorCode(code, 'key'))
    t.equal(available('one'), 0, code)
  }
  t.equal(available('other'), 1800)
  at(3000)
  for (const code of ['WRONGTYPE', 'OOM']) fail(() => masters.noteErrorCode(code, 'key'))
  fail(() => masters.noteFailure(undefined))
  t.same(both(), [200, 2000], 'nobody knows whose failure it was')
  fail(() => masters.noteFailure('key'))
  t.same(both(), [0, 2000])
  at(4000)
  masters.unreached('one', 'ETIMEDOUT')
  t.same(both(), [0, 3000])
  at(5000)
  masters.note('one', SERVES)
  t.same(both(), [1000, 4000])
  world.present = new Set(['other', 'next'])
  t.same(['next', 'other'].map(available), [0, 4000])
  masters.note('next', SERVES)
  at(6000)
  t.same(['one', 'next', 'other'].map(available), [0, 1000, 5000])
  world.present = new Set(['next'])
  masters.noteFailure(undefined)
  t.equal(available('next'), 0, 'there is no other')
  t.end()
})

await test('while some masters do not serve, the others do, and warnings name those that do not by their cause', (t) => {
  const { masters, world, logged } = mastersOf(t, ['one', 'other', 'third'])
  masters.note('one', SERVES)
  for (const name of ['other', 'third']) masters.unreached(name, 'ETIMEDOUT')
  t.equal(masters.condition.share, 1 / 3)
  t.same(masters.condition.why, [], 'it is available')
  const why = explained('ETIMEDOUT')
  t.same(masters.warnings(), [`a master of the session store does not serve: other, third: ${why}`])
  t.same(
    logged().filter(([kind]) => kind !== 'code'),
    [
      ['warn', { faults: `other: ${why}` }, 'a master of the session store does not serve'],
      ['warn', { faults: `other, third: ${why}` }, 'a master of the session store does not serve'],
    ],
  )
  masters.note('one', SILENT)
  t.match(masters.condition, { share: 0, why: [why] })
  t.same(masters.warnings(), [`the session store does not serve: ${why}`])
  t.same(logged().at(-2), ['error', { faults: why }, 'the session store does not serve'])
  t.equal(masters.availableForMs('key'), 0)
  world.present.delete('other')
  masters.note('one', SERVES)
  t.equal(masters.condition.share, 0.5)
  t.end()
})

await test('a store is unavailable since its link is down or its masters refuse, whichever was first', (t) => {
  const { masters, health } = mastersOf(t, ['one'])
  replace(t, performance, 'now', () => 5000)
  masters.note('one', SERVES)
  masters.note('one', SILENT)
  t.equal(masters.unavailableSince, 5000)
  for (const [downSince, expected] of [
    [4000, 4000],
    [6000, 5000],
  ] as const) {
    health.downSince = downSince
    t.equal(masters.unavailableSince, expected)
  }
  t.same([masters.condition.share, masters.condition.why], [0, []], 'nobody has said why')
  health.downReason = 'ECONNREFUSED'
  t.match(masters.condition, { share: 0, why: [explained('ECONNREFUSED')] })
  masters.note('one', SERVES)
  t.equal(masters.unavailableSince, 6000)
  t.end()
})

await test('a master serves only with the rights that sessions need, and once there are indexes with theirs', (t) => {
  const { masters } = mastersOf(t, ['one'])
  const [session = ''] = NEEDS.sessions
  const [index = ''] = NEEDS.subjects
  masters.note('one', { ...SERVES, refused: [index] })
  t.equal(masters.condition.share, 1)
  masters.needIndexes()
  t.equal(masters.condition.share, 0)
  masters.note('one', { ...SERVES, refused: [index, session] })
  t.same(masters.condition.why, [explained('NOPERM', `${session}, ${index}`)])
  masters.note('one', { ...SILENT, refused: [session] })
  t.same(masters.condition.why, [explained('ETIMEDOUT', session)])
  t.end()
})

await test('the code with which a write is refused is passed on, and logged once a minute with what to do', (t) => {
  const { masters, logged } = mastersOf(t, ['one'])
  t.equal(masters.noteErrorCode('WRONGTYPE'), undefined)
  t.same(logged(), [['code', 'WRONGTYPE']])
  t.equal(masters.noteErrorCode('OOM'), 'oom')
  t.equal(masters.noteErrorCode('MISCONF'), 'misconf')
  const warning = ['warn', { reason: 'OOM', advice: ADVICE['OOM'] }, 'the session store refuses writes']
  t.same(logged(), [warning, ['code', 'OOM'], ['code', 'MISCONF']])
  masters.note('one', { ...SERVES, refusal: 'READONLY' })
  t.same(logged().at(-1), ['code', 'READONLY'], 'a probe tells it, too')
  t.end()
})

await test('commands without which limits are not shared are warned of, and no others', (t) => {
  const { masters, logged } = mastersOf(t)
  const { advice } = NEEDS.sharing
  masters.note('one', { ...SERVES, refused: ['HDEL', 'WAIT'] })
  masters.note('other', { ...SERVES, refused: ['GETDEL'] })
  t.same(logged(), [])
  masters.warnOfRights()
  t.same(logged(), [['warn', { commands: ['GETDEL', 'HDEL'], advice }, 'the session store forbids commands']])
  const none = mastersOf(t)
  none.masters.note('one', { ...SERVES, refused: ['WAIT'] })
  none.masters.warnOfRights()
  none.masters.note('one', { ...SERVES, refused: ['HDEL'] })
  t.same(none.logged(), [], 'all have told')
  t.end()
})

await test('a master is asked when it is connected: its report counts, and one that is no master is left', async (t) => {
  const { masters, logged } = mastersOf(t, ['one'])
  await masters.opened(masterNamed('one'), connection([Date.now(), ['HDEL hash']]))
  masters.warnOfRights()
  t.match(logged(), [['warn', { commands: ['HDEL'] }]])
  const { masters: others } = mastersOf(t, ['one'])
  for (const code of ['READONLY', 'LOADING']) {
    const error = new ErrorReply(`${code} no`)
    await t.rejects(others.opened(masterNamed('one'), connection(error)), { message: code })
    t.match(others.condition, { share: 1, why: [] }, 'it is none')
  }
  await others.opened({ ...masterNamed('one'), owns: () => false }, connection([]))
  t.match(others.condition, { share: 1 })
})

await test('what a master replies to the next probe counts, with a sign of life', async (t) => {
  const { masters, logged } = mastersOf(t, ['one'])
  await masters.ask(masterNamed('one'), connection([Date.now(), ['GET key']]))
  t.equal(logged()[0]?.[0], 'alive')
  t.equal(masters.condition.share, 0)
})

await test('after a standstill the masters are asked for the time, once', (t) => {
  let stood = standstill.count
  replace(t, standstill, 'count', undefined)
  Object.defineProperty(standstill, 'count', { configurable: true, get: () => stood })
  const { masters, logged } = mastersOf(t)
  masters.keepTime()
  t.same(logged(), [])
  stood++
  masters.keepTime()
  masters.keepTime()
  t.same(logged(), [['probe']])
  t.end()
})

await test('times are given by the clock of the master that holds the key', (t) => {
  const { masters, world } = mastersOf(t, ['one', 'other', 'third'])
  masters.note('one', clockOf(0))
  masters.note('third', clockOf(0))
  masters.note('other', clockOf(60_000))
  t.ok(Math.abs(masters.skewMs('key')) < 1000)
  world.holder = 'other'
  t.ok(Math.abs(masters.skewMs('key') - 60_000) < 5000)
  t.ok(masters.warnings().length > 0, 'an operator is told')
  t.end()
})
