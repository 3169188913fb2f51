import { test } from 'tap'
import { RememberedKey } from '../../client/src/orders/remembered-key.ts'
import { failure } from '../support/client/page-client.ts'
import { CALL, NOW, PLACE, rememberingPage, sessionOf } from '../support/client/remembering-core.ts'

const OTHER_SESSION = { cause: { message: 'the key belongs to another session' }, outcome: 'unknown' }

await test('the key of an order is kept with its time, its session and a digest of its user, and the same order gets it again', async (t) => {
  const { order, kept, keptOrder, world } = rememberingPage(t)
  t.equal(await order().choose('one'), 'one')
  t.same([...kept.keys()], [PLACE])
  t.same(keptOrder(), { key: 'one', at: NOW, session: 'A', subject: 'qrm3n6-1uar0mn' })
  t.same(world.log, [])
  world.now += 3_600_000
  t.equal(await order().choose('two'), 'one')
  t.same(world.log, [['use', 'one']])
  t.match(keptOrder(), { key: 'one', at: NOW })
})

await test('another order, or one of another name, is another one, and one whose body is no text is not kept', async (t) => {
  const { order, kept, core } = rememberingPage(t)
  await order().choose('one')
  let fresh = 1
  for (const change of [
    { method: 'PUT' },
    { path: '/other' },
    { json: { amount: 2 } },
    { json: undefined, body: 'x' },
  ]) {
    t.equal(await order().choose(`fresh ${++fresh}`, { ...CALL, ...change }), `fresh ${fresh}`)
  }
  t.equal(await new RememberedKey('other').choose(core, CALL, 'named'), 'named')
  t.equal(kept.size, 6)
  t.equal(await order().choose('again', { ...CALL, json: undefined, body: 'x' }), 'fresh 5')
  const bytes = { ...CALL, json: undefined, body: new Uint8Array(1) }
  t.equal(await order().choose('bytes', bytes), 'bytes')
  t.equal(await order().choose('more bytes', bytes), 'more bytes')
  await order().choose('none', { ...CALL, json: undefined })
  t.equal(await order().choose('no body', { ...CALL, json: undefined }), 'none')
  t.equal(kept.size, 7)
})

await test('a key that is too old, or of another session of the user, is followed by the next one, with a refusal', async (t) => {
  for (const [what, lateMs, session] of [
    ['an hour', 3_600_001, sessionOf()],
    ['a clock that was set back', -3_600_001, sessionOf()],
    ['a new login', 0, sessionOf({ session: 'B' })],
  ] as const) {
    const { order, kept, keptOrder, world } = rememberingPage(t)
    await order().choose('one')
    const before = kept.get(PLACE) ?? ''
    world.now += lateMs
    world.session = session
    const late = order()
    const refusal = await failure(late.choose('two'))
    t.match(refusal, OTHER_SESSION, what)
    t.equal(late.remembered.isOfOtherSession(refusal), true)
    t.equal(late.remembered.isOfOtherSession(new Error('another')), false)
    t.equal(late.remembered.isOfOtherSession(undefined), false)
    t.match(keptOrder(), { key: 'one', at: NOW }, 'until the page has been told')
    t.equal(await late.choose('three'), 'one+')
    t.match(keptOrder(), { key: 'one+', at: world.now })
    const told = order()
    kept.set(PLACE, before)
    await failure(told.choose('four'))
    await told.remembered.renew()
    t.equal(await order().choose('five'), 'one+', 'which is sent when the page asks once more')
    await told.remembered.forget()
    t.match(keptOrder(), { key: 'one+' }, 'it is not that of the call which was refused')
  }
})

await test('an order of another user, or of one whom nobody knows, is a new one', async (t) => {
  for (const [before, after] of [
    [{}, { session: 'B', subject: 'other' }],
    [{ subject: undefined }, { session: 'B', subject: undefined }],
    [{ subject: undefined }, { session: 'B' }],
    [{}, { session: 'B', subject: undefined }],
  ]) {
    const { order, keptOrder, world } = rememberingPage(t)
    world.session = sessionOf(before)
    await order().choose('one')
    world.session = sessionOf(after)
    t.equal(await order().choose('two'), 'two')
    t.match(keptOrder(), { key: 'two', session: 'B' })
  }
})

await test('a repetition sends the key that it has sent, although an equal order has forgotten it, and no other', async (t) => {
  const { order, kept, keptOrder, world } = rememberingPage(t)
  const repeated = order()
  await repeated.choose('one')
  kept.clear()
  t.equal(await repeated.choose('two'), 'one')
  t.match(keptOrder(), { key: 'one', at: NOW }, 'it is kept again')
  kept.set(PLACE, JSON.stringify({ ...(keptOrder() as object), key: 'next' }))
  t.equal(await repeated.choose('two'), 'one')
  t.match(keptOrder(), { key: 'next' }, 'another order has the place')
  world.session = sessionOf({ session: 'B' })
  const refusal = await failure(repeated.choose('two'))
  t.match(refusal, OTHER_SESSION)
  t.equal(repeated.remembered.isOfOtherSession(refusal), false, 'what it has sent may have been made')
  t.match(keptOrder(), { key: 'next' })
})

for (const [does, act] of [
  ['forgotten', 'forget'],
  ['given up', 'renew'],
] as const) {
  await test(`a second click orders nothing anew although the first has ${does} its key before the second has chosen one`, async (t) => {
    const { order, keptOrder } = rememberingPage(t)
    const [first, second, other] = [order(), order(), order()]
    await first.choose('one')
    const chosen = second.choose('two')
    const ofOther = other.choose('three', { ...CALL, json: { amount: 2 } })
    await first.remembered[act]()
    t.equal(await chosen, 'one', 'the server answers it as the first')
    t.equal(await ofOther, 'three')
    await second.remembered.forget()
    const next = act === 'forget' ? undefined : { key: 'one+' }
    t.match(keptOrder() ?? undefined, next)

    // A click that comes after that is another order.
    t.equal(await order().choose('four'), next?.key ?? 'four')
  })
}

await test('a second click is an order of its own if the first is refused before the second has chosen a key', async (t) => {
  const { order, keptOrder, world } = rememberingPage(t)
  const [first, second] = [order(), order()]
  await first.choose('one')
  const chosen = second.choose('two')
  await first.remembered.forget(true)
  t.equal(await chosen, 'two', 'with the key of the first, its own refusal would leave its outcome unknown')
  t.match(keptOrder(), { key: 'two' })
  t.same(world.log, [])
})

await test('an order is not sent while the session is not known, or when that has taken too long', async (t) => {
  for (const [session, answerMs, isSent] of [
    [undefined, 0, false],
    [sessionOf(), 20_000, true],
    [sessionOf(), 20_001, false],
  ] as const) {
    const { order, world } = rememberingPage(t)
    Object.assign(world, { session, answerMs })
    if (isSent) t.equal(await order().choose('one'), 'one')
    else t.match(await failure(order().choose('one')), { code: 'not_sent', outcome: undefined, cause: undefined })
  }
  const { order, world } = rememberingPage(t)
  await order().choose('one')
  world.session = undefined
  t.match(await failure(order().choose('two')), { code: undefined, outcome: 'unknown' }, 'it may have been sent before')
})

await test('while nobody is logged in, a new order is sent, and that of a kept one gets the refusal of the server', async (t) => {
  const { order, kept, keptOrder, world, core } = rememberingPage(t)
  world.session = { authenticated: false, now: 0 }
  t.equal(await order().choose('one'), 'one')
  t.equal(kept.size, 0)
  world.session = sessionOf()
  await order().choose('one')
  world.session = { authenticated: false, now: 0 }
  const response = new Response(null, { status: 401 })
  const problem = { code: 'login_required', title: '', detail: '', type: '', status: 401, request_id: '' }
  const refused = new core.ApiError('GET', '/auth/session', response, problem)
  world.ask = () => Promise.reject(refused)
  const late = order()
  t.match(await failure(late.choose('two')), {
    message: 'POST /orders: login_required',
    outcome: 'unknown',
    response,
    problem: { code: 'login_required', outcome: 'unknown' },
    cause: refused,
  })
  t.same(world.log, [['ask', '/auth/session', { signal: null }], 'confirm'])
  await late.remembered.renew()
  t.match(keptOrder(), { key: 'one+' })
  world.ask = () => Promise.reject(new core.ApiError('GET', '/auth/session'))
  t.match(await failure(order().choose('two')), { problem: undefined, outcome: 'unknown' })
  world.ask = () => Promise.resolve()
  t.match(await failure(order().choose('two')), { outcome: 'unknown', cause: undefined })
  const reason = new Error('left')
  world.ask = () => Promise.reject(refused)
  const signal = AbortSignal.abort(reason)
  t.equal(await failure(order().choose('two', { ...CALL, signal })), reason)
})
