import { Registry } from 'prom-client'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { test, type Test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { ordersOf, type Control } from '../../src/controls/control-document.ts'
import { Controls } from '../../src/controls/controls.ts'
import { Identification } from '../../src/controls/identification.ts'
import { Envelope, type Session, type Sessions } from '../../src/sessions/index.ts'
import { controlsAdmin } from '../../src/ops/controls-admin.ts'
import { orderGate } from '../../src/sockets/relay/order-gate.ts'
import { requireUnpaused } from '../../src/proxy/paused-orders.ts'
import { CONTROLS_KEY } from '../../src/store/keys.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { instanceName } from '../../src/telemetry/log.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { sharedNow } from '../../src/time/shared-now.ts'
import { sharing } from '../support/controls/shared-store.ts'
import { clockAhead, timeAhead } from '../support/time/clock-ahead.ts'
import { until } from '../support/time/until.ts'
import { exactly } from '../support/exactly.ts'

const OLD = 'old-secret-of-thirty-two-bytes-or-more'
const NEW = 'new-secret-of-thirty-two-bytes-or-more'

/** Starts the controls of an instance that has this store. Without `logged` nothing may fail. */
async function startControls(
  t: Test,
  store: MemoryStore,
  secrets: Changeable<readonly string[]>,
  logged?: unknown[],
): Promise<Controls> {
  const controls = new Controls({
    store,
    confirmed: store,
    index: await store.openIndex(),
    instance: instanceName(),
    envelope: new Envelope(secrets),
    log: { error: (fault: unknown) => void (logged?.push(fault) ?? t.fail(String(fault))) },
    registry: new Registry(),
    identify: async () => undefined,
  })
  t.teardown(() => controls.shared.close())
  await controls.shared.open()
  return controls
}

const set = (controls: Controls, name: string, value: Control['value']) =>
  controls.shared.change((version, now) => [name, { version, at: Math.floor(now), value }])

await test('controls that no secret opens are obeyed as soon as the secret is there', async (t) => {
  const store = new MemoryStore()
  const first = await startControls(t, store, new Changeable<readonly string[]>([NEW, OLD]))
  await set(first, 'orders', { closing: true })
  const secrets = new Changeable<readonly string[]>([OLD])
  const late = await startControls(t, store, secrets, [])
  t.match(late.shared.warnings, exactly(/controls cannot be read/))
  t.strictSame(late.verdictOn({ key: 'a session', record: {} } as Session), { is: 'unread' })
  // As when its SESSION_SECRETS_FILE is put right.
  secrets.change([NEW, OLD])
  await until(() => late.shared.document.has('orders'), 'it obeys the pause')
  t.same(late.shared.warnings, [])
  t.match(await set(late, 'notice', { message: 'late' }), { version: Number, isShared: true })
  await until(() => first.shared.document.has('notice'), 'the other one learns of its change')
  t.equal((await first.shared.reports()).length, 2)
})

await test('a trading socket is told of the pauses that may be its own, and of no other change', async (t) => {
  const controls = await startControls(t, new MemoryStore(), new Changeable<readonly string[]>([NEW]))
  const told = { known: 0, unknown: 0 }
  for (const [name, record] of [
    ['known', { subject: 'a user' }],
    ['unknown', {}],
  ] as const) {
    t.teardown(orderGate(controls, { key: name, record } as Session).onClosed(() => told[name]++))
  }
  await set(controls, 'orders', { closing: true })
  t.same(told, { known: 1, unknown: 1 })
  await set(controls, 'notice', { message: 'Trading is paused' })
  t.same(told, { known: 1, unknown: 1 }, 'what waits for upstream to read it, and may leave, still leaves')
  await set(controls, ordersOf('another user'), { closing: true })
  t.same(told, { known: 1, unknown: 2 })
  await set(controls, ordersOf('a user'), { closing: true })
  t.same(told, { known: 2, unknown: 3 })
  await set(controls, 'orders', { closing: false })
  t.same(told, { known: 3, unknown: 4 }, 'it may leave no more')
  await set(controls, 'orders', null)
  t.same(told, { known: 3, unknown: 4 }, 'one that is lifted has not begun')
  await set(controls, 'orders', { closing: false })
  t.same(told, { known: 4, unknown: 5 }, 'the same pause again')
})

await test('a change that another worker has noted is counted no more, and has a line of its own only if others know of it', async (t) => {
  const store = new MemoryStore()
  const controls = await startControls(t, store, new Changeable<readonly string[]>([NEW]))
  const lines: unknown[] = []
  const note = (line: unknown): void => void lines.push(line)
  const log = { info: note, warn: note, error: note } as unknown as FastifyBaseLogger
  const admin = controlsAdmin(controls, { sessions: {} as Sessions, hasSubjects: false, log })
  const change = { control: 'notice', value: { message: 'Hello' } } as const
  const requester = { reqId: 'request', client: '127.0.0.1' }
  const command = { is: 'change', change, requester, askedAt: sharedNow(), isNoted: true } as const
  store.replace = store.create = () => Promise.reject(new StoreUnavailable('planted'))
  t.match(await admin(command), { is: 'changed', isShared: false })
  t.same(lines, [])
  Reflect.deleteProperty(store, 'replace')
  Reflect.deleteProperty(store, 'create')
  t.match(await admin(command), { is: 'changed', isShared: true })
  t.match(lines, exactly({ audit: 'controls_changed', outcome: undefined }))
  t.ok((await controls.metrics.changes.get()).values.every(({ value }) => value === 0))
})

await test('a lift counts from when the operator asked for it, a pause from when it is made', async (t) => {
  const controls = await startControls(t, new MemoryStore(), new Changeable<readonly string[]>([NEW]))
  const log = { info: () => undefined, warn: () => undefined } as unknown as FastifyBaseLogger
  const admin = controlsAdmin(controls, { sessions: {} as Sessions, hasSubjects: false, log })
  const requester = { reqId: 'request', client: '127.0.0.1' }
  for (const [value, agoMs] of [
    [null, 5000],
    [{ message: 'Hello' }, 0],
  ] as const) {
    // Workers that could not reach the store have had it before.
    const askedAt = sharedNow() - 5000
    await admin({ is: 'change', change: { control: 'notice', value }, requester, askedAt })
    const at = Number(controls.shared.document.get('notice')?.at)
    t.ok(Math.abs(Date.now() - agoMs - at) < 2000, `${Date.now() - at} ms ago`)
  }
})

await test('a lift that waited for the store lifts nothing that was set anew meanwhile', async (t) => {
  const controls = await startControls(t, new MemoryStore(), new Changeable<readonly string[]>([NEW]))
  const log = { info: () => undefined, warn: () => undefined } as unknown as FastifyBaseLogger
  const admin = controlsAdmin(controls, { sessions: {} as Sessions, hasSubjects: false, log })
  const requester = { reqId: 'request', client: '127.0.0.1' }
  const lift = (agoMs: number) =>
    admin({ is: 'change', change: { control: 'notice', value: null }, requester, askedAt: sharedNow() - agoMs })
  const isShown = (): boolean => Boolean(controls.shared.document.get('notice')?.value)
  const until = Date.now() + 3_600_000
  for (const [value, agoMs, liftedAgoMs, isOvertaken] of [
    [{ message: 'Hello' }, 1000, 3000, true],
    [{ message: 'Hello', until }, 1000, 3000, true],
    [{ message: 'Hello', until: until - 7_200_000 }, 1000, 3000, false],
    [null, 1000, 3000, false],
    [{ message: 'Hello' }, 3000, 1000, false],
    [{ message: 'Hello' }, 50, 200, false],
  ] as const) {
    await controls.shared.change((version, now) => ['notice', { version, at: Math.floor(now) - agoMs, value }])
    t.match(await lift(liftedAgoMs), { is: isOvertaken ? 'overtaken' : 'changed' })
    t.equal(isShown(), isOvertaken)
  }
})

/** A store that replies late. */
class SlowStore extends MemoryStore {
  isAway = false
  delayMs = 0
  reads = 0

  override async readMarked(...args: Parameters<MemoryStore['readMarked']>) {
    this.reads++
    await delay(this.delayMs)
    if (this.isAway) throw new StoreUnavailable(new Error('away'))
    return super.readMarked(...args)
  }
}

await test('no order goes while what the store has cannot be read, and the last pause that was read stays in force', async (t) => {
  const sleep = clockAhead(t)
  const store = new MemoryStore()
  const secrets = new Changeable<readonly string[]>([NEW])
  const logged: unknown[] = []
  const controls = await startControls(t, store, secrets, logged)
  await set(controls, ordersOf('another user'), { closing: true })
  let closes = 0
  t.teardown(orderGate(controls, { key: 'a', record: { subject: 'a user' } } as Session).onClosed(() => closes++))
  const other = `another ${new Envelope(secrets).seal(CONTROLS_KEY, 'controls of operators', 'no JSON')}`
  const { value = '', expiresAt = 0 } = (await store.read(CONTROLS_KEY)) ?? {}
  t.ok(await store.replace(CONTROLS_KEY, value, other, expiresAt))
  sleep(5000)
  await t.rejects(requireUnpaused(controls, { key: 'a', record: { subject: 'a user' } } as Session), {
    code: 'session_store_unavailable',
  })
  await t.rejects(requireUnpaused(controls, { key: 'b', record: { subject: 'another user' } } as Session), {
    code: 'orders_paused',
  })
  t.match(controls.shared.warnings, exactly(/another version/))
  t.match(logged, exactly({ why: /another version/ }))
  t.equal(closes, 1, 'what upstream has not read yet is withdrawn')
  t.ok(await controls.shared.reports())
  t.equal((await store.read(CONTROLS_KEY))?.value, other, 'it is not overwritten')
})

await test('an instance that cannot read what was only sealed anew sends orders, until something is changed', async (t) => {
  const store = new MemoryStore()
  const session = { key: 'a', record: { subject: 'a user' } } as Session
  const first = await startControls(t, store, new Changeable<readonly string[]>([OLD]), [])
  await set(first, 'orders', { closing: true })
  await set(first, 'orders', null)
  const second = await startControls(t, store, new Changeable<readonly string[]>([NEW, OLD]))
  await until(() => first.shared.warnings.length > 0, 'it is sealed anew')
  t.equal(first.verdictOn(session), undefined)
  await set(second, 'notice', { message: 'of the second' })
  await until(() => first.verdictOn(session)?.is === 'unread', 'a pause could have been set')
})

await test('orders that arrive together while the controls are old share a read, and go on although the store is slow', async (t) => {
  const sleep = clockAhead(t)
  const store = new SlowStore()
  const controls = await startControls(t, store, new Changeable<readonly string[]>([NEW]))
  store.delayMs = 1000
  await until(() => store.reads === 2, 'a poll has begun')
  sleep(5000)
  const session = { key: 'a', record: { subject: 'a user' } } as Session
  await Promise.all(Array.from({ length: 20 }, () => requireUnpaused(controls, session)))
  t.ok(store.reads <= 4, `${store.reads} reads`)
})

await test('an order that is judged after the controls were closed asks the store once, and holds up nobody', async (t) => {
  const ahead = clockAhead(t)
  const { start } = await sharing(t)
  const controls = await start()
  await controls.close()
  ahead(1000)
  t.ok(controls.isBehind)
  await controls.catchUp()
  t.notOk(controls.isBehind)
})

await test('after a suspension, of which only the time of day tells, no order goes before the controls were asked for', async (t) => {
  const suspend = timeAhead(t)
  const store = new SlowStore()
  const controls = await startControls(t, store, new Changeable<readonly string[]>([NEW]))
  const session = { key: 'a', record: { subject: 'a user' } } as Session
  t.equal(controls.verdictOn(session), undefined)
  suspend(600)
  t.match(controls.verdictOn(session), { is: 'unidentified' }, 'although they are not old yet')
  await requireUnpaused(controls, session)
  t.equal(controls.verdictOn(session), undefined)
  store.isAway = true
  suspend(600)
  const { reads } = store
  await until(() => store.reads >= reads + 2, 'a poll has failed')
  t.match(controls.verdictOn(session), { is: 'unidentified' }, 'a poll that fails hears nothing')
  await requireUnpaused(controls, session)
  t.equal(controls.verdictOn(session), undefined, 'without the store the last document stays in force')
})

await test('a session that could not be identified is asked for again five seconds later, and then is known', async (t) => {
  const ahead = clockAhead(t)
  const session = { key: 'a session', record: {} } as Session
  let subject: string | undefined
  const identification = new Identification(async () => subject)
  await identification.ask(session)
  t.equal(identification.of(session), 'failed')
  subject = 'a user'
  ahead(5001)
  t.equal(identification.of(session), undefined)
  await identification.ask(session)
  t.same(identification.of(session), { subject: 'a user' })
})
