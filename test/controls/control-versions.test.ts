import { test, type Test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { SharedControls } from '../../src/controls/shared-controls.ts'
import { Envelope } from '../../src/sessions/index.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import type { SessionIndex } from '../../src/store/session-index.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { SECRETS } from '../support/server/world.ts'
import { until } from '../support/time/until.ts'

const DAY = 86_400_000
const PAUSE = { closing: true }

/** A store that the instances of a test share, and that each of them may be cut off from. */
async function sharing(t: Test) {
  const store = new MemoryStore()
  const index = await store.openIndex()
  const start = async (own: { isCutOff?: boolean; index?: SessionIndex; onChange?: () => void } = {}) => {
    const reached = <A extends unknown[], R>(call: (...args: A) => Promise<R>) => {
      return async (...args: A): Promise<R> => {
        if (own.isCutOff) throw new StoreUnavailable(new Error('cut off'))
        return call(...args)
      }
    }
    const controls = new SharedControls({
      store: { readMarked: reached((...args) => store.readMarked(...args)) },
      confirmed: Object.assign(Object.create(store) as MemoryStore, {
        create: reached((...args: Parameters<MemoryStore['create']>) => store.create(...args)),
        replace: reached((...args: Parameters<MemoryStore['replace']>) => store.replace(...args)),
      }),
      index: own.index ?? index,
      envelope: new Envelope(new Changeable([SECRETS])),
      log: { error: (fault: unknown) => t.fail(String(fault)) },
      onChange: () => own.onChange?.(),
    })
    t.teardown(() => controls.close())
    await controls.open()
    return controls
  }
  return { index, start }
}

const set = (controls: SharedControls, value: typeof PAUSE | null, at = (now: number) => now) =>
  controls.change((version, now) => ['orders', { version, at: Math.floor(at(now)), value }])

const isPaused = ({ document }: SharedControls): boolean => Boolean(document.get('orders')?.value)

await test('a pause that is told to an instance which started without the store outlives the return of the store', async (t) => {
  const { start } = await sharing(t)
  const other = await start()
  await set(other, PAUSE)
  await set(other, null)
  const own = { isCutOff: true }
  const controls = await start(own)
  t.match(await set(controls, PAUSE), { isShared: false })
  own.isCutOff = false
  await until(() => isPaused(other), 'the other instance has learnt of it')
  t.ok(isPaused(controls))
})

await test('a month after orders went on, an instance that starts gives out a later version, which all take', async (t) => {
  const { start } = await sharing(t)
  const old = await start()
  await set(old, PAUSE)
  await set(old, null, (now) => now - 31 * DAY)
  const fresh = await start()
  t.match(await set(fresh, PAUSE), { version: 3, isShared: true })
  await until(() => isPaused(old), 'the old instance obeys')
  t.ok(isPaused(fresh))
})

await test('an instance obeys what it has read before it reports that', async (t) => {
  const { index, start } = await sharing(t)
  const report = Promise.withResolvers<'added'>()
  let hangs = false
  let hasBegun = false
  const first = await start()
  const own = { onChange: () => undefined as unknown }
  const second = await start({
    index: {
      add: (...args) => {
        hasBegun ||= hangs
        return hangs ? report.promise : index.add(...args)
      },
      list: (key) => index.list(key),
      remove: (...args) => index.remove(...args),
    } as SessionIndex,
    onChange: () => own.onChange(),
  })
  t.teardown(() => report.resolve('added'))
  let obeysSince = ''
  own.onChange = () => (obeysSince ||= isPaused(second) ? (hasBegun ? 'after the report' : 'before the report') : '')
  hangs = true
  await set(first, PAUSE)
  await until(() => hasBegun, 'it reports')
  t.equal(obeysSince, 'before the report')
})
