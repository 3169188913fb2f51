import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'tap'
import { Masters } from '../../src/store/servers/masters.ts'
import type { MasterReport } from '../../src/store/servers/master-probe.ts'
import { QUIET } from '../support/redis/connected-store.ts'
import { exactly } from '../support/exactly.ts'
import { clockAhead } from '../support/time/clock-ahead.ts'

const SERVES: MasterReport = { refusal: undefined, refused: [], clock: undefined }

const HEALTHY = {
  downSince: undefined,
  downReason: undefined,
  healthyForMs: 1,
  noteAlive: () => undefined,
  noteErrorCode: () => undefined,
}

const masterOf = () => ({ name: 'one', options: {}, owns: () => true })

await test('what is found at a master that was taken away meanwhile does not count', (t) => {
  const present = new Set(['one', 'other'])
  const link = { masterNames: () => present, masterOf, probe: () => undefined }
  const warned: string[] = []
  const masters = new Masters(link, HEALTHY, { ...QUIET, warn: (_details, message) => warned.push(message) })
  t.teardown(() => masters.clock.close())
  for (const name of present) masters.note(name, SERVES)
  present.delete('other')
  masters.note('other', { ...SERVES, refusal: 'ETIMEDOUT' })
  t.same([masters.condition.share, warned], [1, []])
  t.end()
})

await test('what was found at a master that is there no more is forgotten', (t) => {
  const present = new Set(['one', 'other'])
  const link = { masterNames: () => present, masterOf, probe: () => undefined }
  const masters = new Masters(link, HEALTHY, QUIET)
  t.teardown(() => masters.clock.close())
  masters.note('other', { ...SERVES, refusal: 'CLUSTERDOWN' })
  masters.note('one', SERVES)
  t.equal(masters.condition.share, 0.5)
  present.delete('other')
  masters.note('one', SERVES)
  t.match(masters.condition, { share: 1, why: [] })
  t.end()
})

await test('a master is tried with a write once a minute, however often it is asked', async (t) => {
  const link = { masterNames: () => new Set(['one']), masterOf, probe: () => undefined }
  const masters = new Masters(link, HEALTHY, QUIET)
  t.teardown(() => masters.clock.close())
  const tried: unknown[] = []
  const evaluate = async (_script: string, options?: { readonly arguments?: unknown }) => {
    tried.push(options?.arguments)
    return [Date.now(), []]
  }
  const connection = { isReady: true, eval: evaluate as never, ping: async () => 'PONG' }
  for (let count = 0; count < 3; count++) await masters.ask(masterOf(), connection)
  t.same(tried, [['write'], [], []])
})

await test('a master that replies over a connection that was given up meanwhile shows no sign of life', async (t) => {
  let alive = 0
  const link = { masterNames: () => new Set(['one']), masterOf, probe: () => undefined }
  const noteAlive = (): void => void alive++
  const health = { downSince: 0, downReason: 'silence', healthyForMs: 0, noteAlive, noteErrorCode: () => undefined }
  const masters = new Masters(link, health, QUIET)
  t.teardown(() => masters.clock.close())
  const connection = { isReady: true, eval: async () => [Date.now(), []], ping: async () => 'PONG' }
  await masters.ask(masterOf(), connection)
  t.equal(alive, 1)
  const asked = masters.ask(masterOf(), connection)
  connection.isReady = false
  await asked
  t.equal(alive, 1)
})

await test('a master that has lost its last slot shows no sign of life before it replies', async (t) => {
  let alive = 0
  const link = { masterNames: () => new Set(['one']), masterOf, probe: () => undefined }
  const noteAlive = (): void => void alive++
  const health = { downSince: 0, downReason: 'silence', healthyForMs: 0, noteAlive, noteErrorCode: () => undefined }
  const masters = new Masters(link, health, QUIET)
  t.teardown(() => masters.clock.close())
  const pong = Promise.withResolvers<unknown>()
  const connection = { isReady: true, eval: async () => t.fail('there is no key to ask for'), ping: () => pong.promise }
  const asked = masters.ask({ ...masterOf(), owns: () => false }, connection)
  await turn()
  t.equal(alive, 0)
  pong.resolve('PONG')
  await asked
  t.equal(alive, 1)
})

await test('a store that refuses is unavailable since the first probe that found it so', (t) => {
  const link = { masterNames: () => new Set(['one']), masterOf, probe: () => undefined }
  const masters = new Masters(link, HEALTHY, QUIET)
  t.teardown(() => masters.clock.close())
  const pass = clockAhead(t)
  masters.note('one', SERVES)
  const found: (number | undefined)[] = []
  for (let count = 0; count < 2; count++) {
    masters.note('one', { ...SERVES, refusal: 'READONLY' })
    found.push(masters.unavailableSince)
    pass(1000)
  }
  t.ok(Number.isFinite(found[0]), 'it has served before')
  t.equal(found[1], found[0])
  masters.note('one', SERVES)
  masters.note('one', { ...SERVES, refusal: 'READONLY' })
  t.ok(Number(masters.unavailableSince) >= Number(found[0]) + 2000, 'another outage begins anew')
  t.end()
})

await test('a fault is logged once, until another is found or none', (t) => {
  const link = { masterNames: () => new Set(['one', 'other']), masterOf, probe: () => undefined }
  const logged: string[] = []
  const write = (_details: object, message: string): void => void logged.push(message)
  const masters = new Masters(link, HEALTHY, { ...QUIET, info: write, warn: write, error: write })
  t.teardown(() => masters.clock.close())
  const silent = { ...SERVES, refusal: 'ETIMEDOUT' }
  for (const name of ['one', 'other']) masters.note(name, SERVES)
  for (const name of ['one', 'one', 'other', 'other']) masters.note(name, silent)
  for (const name of ['one', 'one', 'other', 'other']) masters.note(name, SERVES)
  t.same(logged, [
    'a master of the session store does not serve',
    'the session store does not serve',
    'a master of the session store does not serve',
    'every master of the session store serves',
  ])
  t.end()
})

await test('a store that refuses everything from the start was never available', (t) => {
  const link = { masterNames: () => new Set(['one']), masterOf, probe: () => undefined }
  const masters = new Masters(link, HEALTHY, QUIET)
  t.teardown(() => masters.clock.close())
  masters.note('one', { ...SERVES, refusal: 'READONLY' })
  t.equal(masters.unavailableSince, -Infinity)
  t.end()
})

await test('a master that is full at the start, and so tells no rights, is warned of once it tells them', (t) => {
  const link = { masterNames: () => new Set(['one', 'other']), masterOf, probe: () => undefined }
  const warned: unknown[] = []
  const warn = (details: object, message: string): void => void (/forbids/.test(message) && warned.push(details))
  const masters = new Masters(link, HEALTHY, { ...QUIET, warn })
  t.teardown(() => masters.clock.close())
  masters.note('one', { ...SERVES, refusal: 'OOM' })
  masters.note('other', { ...SERVES, refusal: 'ETIMEDOUT' })
  masters.warnOfRights()
  masters.note('one', { ...SERVES, refusal: 'OOM' })
  t.same(warned, [])
  for (let count = 0; count < 2; count++) masters.note('one', { ...SERVES, refused: ['GETDEL'] })
  t.match(warned, exactly({ commands: ['GETDEL'] }))
  t.equal(warned.length, 1)
  t.end()
})
