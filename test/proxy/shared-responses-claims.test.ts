import { setImmediate } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { sharedResponseKey } from '../../src/store/keys.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { exactly } from '../support/exactly.ts'
import { answered, ENDPOINT, sharing } from '../support/proxy/sharing.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { stoppedClocks } from '../support/time/stopped-clocks.ts'
import { until } from '../support/time/until.ts'

const KEY = sharedResponseKey(ENDPOINT.path)
const CLAIM = [KEY, /^[\w-]{36}$/]
const AWAY = new StoreUnavailable('away')

/** A store that notes what is removed from it, and how often it is read. */
function noting() {
  const shared = sharing()
  const { store } = shared
  const removed: unknown[] = []
  const world = { reads: 0 }
  const [removeIf, readMarked] = [store.removeIf.bind(store), store.readMarked.bind(store)]
  store.removeIf = async (...args) => (removed.push(args), removeIf(...args))
  store.readMarked = async (...args) => (world.reads++, readMarked(...args))
  return { ...shared, removed, world }
}

/** The record that an instance has written. */
async function recordIn({ store, envelope }: ReturnType<typeof sharing>): Promise<unknown> {
  const { value = '' } = (await store.read(KEY)) ?? {}
  return JSON.parse(envelope.open(KEY, 'shared response', value) ?? 'null')
}

/** Writes a record as an instance does that has heard this response. */
async function write({ store, envelope }: ReturnType<typeof sharing>, body: string, freshUntil: number): Promise<void> {
  const outcome = { is: 'answered', status: 200, headers: {}, body: Buffer.from(body).toString('base64') }
  const sealed = envelope.seal(KEY, 'shared response', JSON.stringify({ outcome, freshUntil }))
  await store.remove(KEY)
  await store.create(KEY, sealed, Date.now() + 60_000)
}

await test('without the store an instance asks for itself, and takes its claim back once the store is there', async (t) => {
  for (const failing of ['readMarked', 'lock'] as const) {
    const { instance, store, comeBack, removed } = noting()
    const { call, asked } = instance()
    const before = store[failing]
    Object.assign(store, { [failing]: () => Promise.reject(AWAY) })
    for (const _ of [1, 2]) t.match(await call(), { body: 'response 1' })
    t.equal(asked.length, 1, 'it counts here')
    t.equal(await store.read(KEY), undefined, 'nobody else gets it')
    Object.assign(store, { [failing]: before })
    t.same(removed, [])
    comeBack()
    t.match(removed, exactly(CLAIM))
  }
})

await test('a fault of this program is thrown, and upstream is not asked', async (t) => {
  const { instance, store } = sharing()
  const { call, asked } = instance()
  store.readMarked = () => Promise.reject(new TypeError('planted'))
  await t.rejects(call(), /planted/)
  t.equal(asked.length, 0)
})

/** A store that does not reply to one command. */
async function silent(t: Test, command: 'readMarked' | 'lock' | 'replace') {
  const timers = new HeldTimers(t, 'setTimeout', 500)
  const all = noting()
  const { call, asked } = all.instance()
  all.store[command] = () => new Promise<never>(() => undefined)
  const called = call()
  await until(() => timers.size === 1 && (command !== 'replace' || asked.length === 1), 'it waits for the store')
  await setImmediate()
  timers.run()
  t.match(await called, { body: 'response 1' })
  t.equal(asked.length, 1)
  return all
}

await test('a store that does not reply is waited for half a second, and then loses its claim', async (t) => {
  for (const command of ['readMarked', 'lock', 'replace'] as const) {
    const { comeBack, removed } = await silent(t, command)
    comeBack()
    t.match(removed, exactly(CLAIM), command)
  }
})

await test('a response that could not be told gives the claim back, so that others need not wait', async (t) => {
  const { instance, store, comeBack, removed } = noting()
  const replace = store.replace.bind(store)
  store.replace = () => Promise.reject(AWAY)
  t.match(await instance().call(), { body: 'response 1' })
  comeBack()
  t.match(removed, exactly([KEY, (await store.read(KEY))?.value ?? /^[\w-]{36}$/]))
  await until(async () => (await store.read(KEY)) === undefined, 'it is given back')
  store.replace = replace
  const other = instance()
  other.world.exchange = async () => answered('another')
  t.match(await other.call(), { body: 'another' })
})

await test('who finds no claim, and gets none since another was faster, looks again', async (t) => {
  const { instance, store } = sharing()
  const lock = store.lock.bind(store)
  let tries = 0
  store.lock = async (...args) => ++tries > 1 && lock(...args)
  t.match(await instance().call(), { body: 'response 1' })
  t.equal(tries, 2)
})

await test('while another instance asks, a caller waits for its response, and asks nobody', async (t) => {
  const { instance } = sharing()
  const [one, other] = [instance(), instance()]
  const gate = Promise.withResolvers<void>()
  other.world.exchange = async () => (await gate.promise, answered('elsewhere'))
  const theirs = other.call()
  await until(() => other.asked.length === 1, 'the other one asks')
  const ours = one.call()
  await setImmediate()
  gate.resolve()
  for (const reply of await Promise.all([theirs, ours])) t.equal(reply.body, 'elsewhere')
  t.equal(one.asked.length, 0)
})

await test('who waits for another instance for as long as upstream may take gives up, and the next caller tries anew', async (t) => {
  const pass = stoppedClocks(t)
  const { instance, store, world } = noting()
  await store.lock(KEY, 'another instance', 60_000)
  const { call, asked } = instance()
  const called = call()
  await until(() => world.reads === 1, 'it waits')
  pass(9_999)
  await until(() => world.reads > 2, 'it still waits')
  pass(1)
  await t.rejects(called, { code: 'upstream_timeout' })
  t.equal(asked.length, 0)
  await store.remove(KEY)
  t.match(await call(), { body: 'response 1' })
})

await test('while another instance asks, a recent response is sent, and the store is read once in 100 ms', async (t) => {
  const pass = stoppedClocks(t)
  const { instance, store, world } = noting()
  const { call } = instance()
  await call()
  await store.remove(KEY)
  await store.lock(KEY, 'another instance', 60_000)
  pass(3001)
  world.reads = 0
  for (const [ms, reads] of [
    [0, 1],
    [99, 1],
    [1, 2],
  ] as const) {
    pass(ms)
    t.match(await call(), { body: 'response 1' })
    t.equal(world.reads, reads)
  }
})

await test('a record is sealed, says what all may know, and lasts by the clock of the store', async (t) => {
  const pass = stoppedClocks(t)
  const shared = sharing()
  const { instance, store } = shared
  const readMarked = store.readMarked.bind(store)
  store.readMarked = async (...args) => ({ ...(await readMarked(...args)), now: Date.now() + 5000.5 })
  const [one, other] = [instance(), instance()]
  await one.call()
  const freshUntil = Math.ceil(Date.now() + 8000.5)
  const body = Buffer.from('response 1').toString('base64')
  t.strictSame(await recordIn(shared), { outcome: { is: 'answered', status: 200, headers: {}, body }, freshUntil })
  t.equal((await store.read(KEY))?.expiresAt, freshUntil)
  t.match(await other.call(), { body: 'response 1' })
  pass(2999)
  t.match(await other.call(), { body: 'response 1' })
  t.equal(other.asked.length, 0)
  for (const [headers, rest] of [
    [{ 'retry-after': '7' }, { retryAfter: '7' }],
    [{ 'retry-after': ['7', '8'] }, {}],
  ] as const) {
    const refused = sharing()
    const called = refused.instance()
    called.world.exchange = async () => answered('secret', 503, headers)
    await t.rejects(called.call())
    t.strictSame(Object(await recordIn(refused)).outcome, { is: 'withheld', status: 503, ...rest })
  }
  const failing = sharing()
  const third = failing.instance()
  third.world.exchange = async () => ({ is: 'timeout', cause: new Error('secret') })
  await t.rejects(third.call())
  t.strictSame(Object(await recordIn(failing)).outcome, { is: 'timeout' })
})

await test('a response that counts for much longer than it may is of an instance whose clock is wrong, and is removed', async (t) => {
  stoppedClocks(t)
  for (const [aheadMs, body] of [
    [8000, 'of another instance'],
    [8001, 'response 1'],
  ] as const) {
    const shared = sharing()
    await write(shared, 'of another instance', Date.now() + aheadMs)
    const { call } = shared.instance()
    t.match(await call(), { body })
  }
  const failing = sharing()
  await write(failing, 'of another instance', Date.now() + 8001)
  failing.store.removeIf = () => Promise.reject(AWAY)
  t.match(await failing.instance().call(), { body: 'response 1' }, 'without the store it asks for itself')
})
