import { test, type Test } from 'tap'
import { LinkHealth } from '../../src/store/servers/link-health.ts'
import { NO_DESCRIPTOR } from '../../src/telemetry/descriptors.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { replace } from '../support/time/replace.ts'

/** The health of a link, what it has logged and done, and a clock that a test moves. */
function healthOf(t: Test) {
  const looks = new HeldTimers(t, 'setInterval', 250)
  const world = { now: 10_000, log: [] as unknown[] }
  replace(t, performance, 'now', () => world.now)
  const note =
    (kind: string) =>
    (...args: unknown[]): void =>
      void world.log.push([kind, ...args])
  const log = { error: note('error'), warn: note('warn'), info: note('info') }
  const health = new LinkHealth({ abandon: note('abandon') }, log, note('unhealthy'))
  t.teardown(() => health.close())
  return {
    health,
    world,
    looks,
    logged: () => world.log.splice(0),
    /** Looks at the link every 250 ms for so long. */
    pass: async (ms: number): Promise<void> => {
      for (let left = ms; left > 0; left -= 250) {
        world.now += 250
        looks.run()
        await new Promise(setImmediate)
      }
    },
    /** Looks once, after so long. */
    look: async (ms: number): Promise<void> => {
      world.now += ms
      looks.run()
      await new Promise(setImmediate)
    },
  }
}

const CONNECTED = ['info', {}, 'the session store is connected']
const silent = (reason: string) => ['warn', { reason }, 'the session store does not respond']

await test('a link is unhealthy until its first sign of life, and says so once', (t) => {
  const { health, world, logged } = healthOf(t)
  t.same([health.downSince, health.downReason, health.healthyForMs], [-Infinity, undefined, 0])
  health.noteLoss('ECONNREFUSED')
  t.same([health.downSince, health.downReason], [-Infinity, 'ECONNREFUSED'])
  health.noteLoss('ECONNREFUSED')
  t.same(logged(), [silent('ECONNREFUSED')], 'it was not healthy before')
  health.noteAlive()
  world.now += 300
  t.same([health.downSince, health.downReason, health.healthyForMs], [undefined, undefined, 300])
  health.noteAlive()
  t.same(logged(), [CONNECTED])
  t.equal(health.healthyForMs, 300)
  t.end()
})

await test('a loss is told once, with its reason and every other one, and lasts until the next sign of life', (t) => {
  const { health, world, logged } = healthOf(t)
  health.noteAlive()
  logged()
  health.noteLoss('timeout')
  world.now += 100
  health.noteLoss('timeout')
  health.noteLoss('ECONNRESET')
  t.same([health.downSince, health.downReason, health.healthyForMs], [10_000, 'ECONNRESET', 0])
  t.same(logged(), [silent('timeout'), ['unhealthy'], silent('ECONNRESET')])
  health.noteLoss('EMFILE')
  t.same(logged(), [['error', { reason: 'EMFILE' }, NO_DESCRIPTOR]])
  health.noteAlive()
  health.noteLoss('EMFILE')
  t.same(logged(), [CONNECTED, ['error', { reason: 'EMFILE' }, NO_DESCRIPTOR], ['unhealthy']])
  t.end()
})

await test('a server that is no master is left', (t) => {
  const { health, logged } = healthOf(t)
  health.noteAlive()
  logged()
  for (const code of ['READONLY', 'MASTERDOWN', 'LOADING', 'MISCONF', 'CLUSTERDOWN']) health.noteErrorCode(code)
  t.same(
    logged(),
    ['READONLY', 'MASTERDOWN', 'LOADING'].map((code) => ['abandon', code]),
  )
  t.end()
})

await test('a link that is silent for 2 seconds is unhealthy, and after half a second more it is left', async (t) => {
  const { health, pass, logged } = healthOf(t)
  health.noteAlive()
  logged()
  await pass(2000)
  t.same(logged(), [])
  await pass(250)
  t.same(logged(), [silent('silence'), ['unhealthy']])
  t.equal(health.downSince, 12_250)
  await pass(250)
  t.same(logged(), [])
  await pass(250)
  t.same(logged(), [['abandon', 'silence']])
})

await test('a reply that is read after the look and before the judgement ends the silence', async (t) => {
  const { health, world, looks, logged } = healthOf(t)
  health.noteAlive()
  logged()
  for (let look = 0; look < 9; look++) {
    world.now += 250
    looks.run()
  }
  health.noteAlive()
  await new Promise(setImmediate)
  t.same(logged(), [])
})

await test('a link that was lost and stays silent is left, and not lost once more', async (t) => {
  const { health, pass, logged } = healthOf(t)
  health.noteAlive()
  health.noteLoss('ECONNRESET')
  logged()
  await pass(2500)
  t.same(logged(), [])
  await pass(250)
  t.same(logged(), [['abandon', 'silence']])
  t.equal(health.downReason, 'ECONNRESET')
})

await test('the time for which this process was blocked is no silence, unless it was as short as a timer may be late', async (t) => {
  for (const [lateMs, silence] of [
    [50, ['warn']],
    [51, []],
  ] as const) {
    const { health, look, logged } = healthOf(t)
    health.noteAlive()
    logged()
    for (let looks = 0; looks < 7; looks++) await look(250)
    await look(250 + lateMs)
    t.same(
      logged().flatMap((entry) => (Array.isArray(entry) && entry[0] === 'warn' ? ['warn'] : [])),
      silence,
      `${lateMs} ms`,
    )
  }
  const { health, world, look, pass, logged } = healthOf(t)
  world.now += 60_000
  health.noteAlive()
  logged()
  await look(0)
  await pass(2000)
  t.same(logged(), [], 'nobody has been heard in the future')
  await pass(250)
  t.match(logged(), [silent('silence'), ['unhealthy']])
})

await test('a link that was closed is down for good, which is no loss', (t) => {
  const { health, world, looks, logged } = healthOf(t)
  health.noteAlive()
  logged()
  t.equal(looks.size, 1)
  health.close()
  t.same([looks.size, health.downSince], [0, 10_000])
  world.now += 100
  health.close()
  health.noteLoss('closed')
  health.noteAlive()
  t.same([health.downSince, health.downReason, logged()], [10_000, undefined, []])
  t.end()
})

await test('the look at a link keeps no process alive', (t) => {
  let isHeld = true
  const looks = { unref: () => (isHeld = false) }
  replace(t, globalThis, 'setInterval', () => looks)
  const log = { error: () => undefined, warn: () => undefined, info: () => undefined }
  const health = new LinkHealth({ abandon: () => undefined }, log, () => undefined)
  t.equal(isHeld, false)
  health.close()
  t.end()
})
