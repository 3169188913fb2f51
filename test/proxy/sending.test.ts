import { test } from 'tap'
import type { ForwardOutcome } from '../../src/upstream/forwarding.ts'
import type { OutgoingBody } from '../../src/upstream/request-body.ts'
import type { Problem } from '../../src/problem.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import type { Session } from '../../src/sessions/index.ts'
import { ANSWERED, keyed, sending, sessionWith } from '../support/proxy/sending.ts'

const STALE: ForwardOutcome = { is: 'stale', why: 'session' }
const STREAMED = { is: 'streamed', content: {}, headers: [] } as unknown as OutgoingBody

await test('a call carries what its endpoint needs, and goes over the connections of its kind', async (t) => {
  for (const [method, credential, client, own] of [
    ['POST', 'bearer', 'orders', ['app', 'app-id', 'authorization', 'Bearer token', 'content-length', '2']],
    ['PATCH', 'pat', 'orders', ['app', 'app-id', 'content-length', '2']],
    ['GET', 'bearer', 'reads', ['app', 'app-id', 'authorization', 'Bearer token']],
    ['GET', 'none', 'reads', []],
  ] as const) {
    const { sent, run } = sending({ method, credential })
    t.match(await run(), { outcome: ANSWERED })
    t.equal(sent[0]?.client, client)
    t.same(sent[0]?.headers.slice(6), own, `${method} ${credential}`)
    t.match(sent[0], { method, path: '/path?a=1', template: '/path', subject: 'subject:CR1' })
    t.equal(sent[0]?.source?.(), 'subject:CR1')
    t.same(sent[0]?.conditions?.orders === undefined, method === 'GET', 'nobody pauses reads')
  }
  const { sent, run } = sending({ method: 'GET', credential: 'none', session: undefined as unknown as Session })
  await run()
  t.ok(sent.length === 1)
})

await test('what must hold when the first byte leaves is asked then', async (t) => {
  const { world, sent, run } = sending()
  const one = keyed()
  await run(one)
  const { session, claim, orders } = sent[0]?.conditions ?? {}
  t.equal(claim, one.claim)
  t.same([session?.(), orders?.()], [true, true])
  world.isCurrent = false
  world.verdict = { is: 'paused' }
  t.same([session?.(), orders?.()], [false, false])
  // The controls are too old, or it is not known whether this user is the one who is paused.
  world.verdict = { is: 'unidentified' }
  t.equal(orders?.(), false)
  const unpaused = sending()
  unpaused.world.hasControls = false
  await unpaused.run()
  t.equal(unpaused.sent[0]?.conditions?.orders, undefined)
})

await test('an order is sent by the session as it is now, and not at all for one that has ended', async (t) => {
  const { world, sent, run } = sending()
  world.isCurrent = false
  t.match(await run(), { call: { session: { record: { accessToken: 'another token' } } } })
  t.ok(sent[0]?.headers.includes('Bearer another token'))
  world.reread = { is: 'none' }
  t.match(await run(), { code: 'session_expired', details: { loginUrl: 'https://bff.test/auth/login' } })
  const cause = new StoreUnavailable('away')
  world.reread = { is: 'storeDown', cause }
  t.equal(await run(), cause)
  t.equal(sent.length, 1)
  const read = sending({ method: 'GET' })
  read.world.isCurrent = false
  const { call } = (await read.run()) as { call: unknown }
  t.equal(call, read.call, 'a GET is sent as it came')
  t.equal(read.world.rereads, 0)
})

await test('a call whose session changes while it waits is sent by the new one, three times at most', async (t) => {
  const read = sending({ method: 'GET' })
  read.world.isCurrent = false
  read.world.outcomes = [STALE, ANSWERED]
  t.match(await read.run(), { outcome: ANSWERED })
  t.equal(read.world.rereads, 1)
  t.ok(read.sent[1]?.headers.includes('Bearer another token'))
  const order = sending()
  order.world.outcomes = [STALE, STALE, STALE, ANSWERED]
  t.match(await order.run(), { code: 'session_store_unavailable', details: { retryAfterSeconds: 1 } })
  t.equal(order.sent.length, 3)
  const streamed = sending()
  streamed.world.body = STREAMED
  streamed.world.outcomes = [STALE, ANSWERED]
  t.match(await streamed.run(), { code: 'credential_renewed', details: { retryAfterSeconds: 0 } })
  t.equal(streamed.sent.length, 1)
  const once = sending()
  once.world.body = STREAMED
  t.match(await once.run(), { outcome: ANSWERED })
})

await test('a further piece of a body that is streamed asks for the session and for pauses again', async (t) => {
  const { world, run } = sending()
  const content = { mayGoOn: (): Promise<void> => Promise.reject(new Error('not set')) }
  world.body = { is: 'streamed', content, headers: [] } as unknown as OutgoingBody
  await run()
  await content.mayGoOn()
  world.isCurrent = false
  world.reread = { is: 'none' }
  await t.rejects(content.mayGoOn(), { code: 'session_expired' })
  world.isCurrent = true
  world.verdict = { is: 'paused', message: 'maintenance' }
  await t.rejects(content.mayGoOn(), { code: 'orders_paused' })
})

await test('a call whose claim has ended is not sent', async (t) => {
  const { sent, run } = sending()
  t.match(await run(keyed(false)), { code: 'session_store_unavailable' })
  t.equal(sent.length, 0)
})

await test('an order that operators have paused is not sent, and says for how long', async (t) => {
  const { world, sent, run, head } = sending()
  world.verdict = { is: 'unidentified' }
  t.match(await run(), { outcome: ANSWERED })
  world.verdict = { is: 'unidentified' }
  world.identified = { is: 'paused', message: 'maintenance' }
  t.match(await run(), { code: 'orders_paused', message: 'maintenance', details: { retryAfterSeconds: 7 } })
  t.same(head, [{ by: 'call' }])
  world.verdict = { is: 'paused' }
  world.pausedSeconds = undefined
  const endless = (await run()) as Problem
  t.same([endless.code, endless.headers()], ['orders_paused', {}])
  t.equal(sent.length, 1)
})

await test('that upstream has accepted a renewed token is noted', async (t) => {
  const renewed = sessionWith('token', { isAfterRefusal: true })
  for (const [session, credential, outcome, isNoted] of [
    [renewed, 'bearer', ANSWERED, true],
    [renewed, 'bearer', { is: 'withheld', status: 401 }, false],
    [renewed, 'bearer', { is: 'withheld', status: 500 }, false],
    [renewed, 'bearer', { is: 'timeout', cause: new Error('silence') }, false],
    [renewed, 'pat', ANSWERED, false],
    [sessionWith('token'), 'bearer', ANSWERED, false],
  ] as const) {
    const { world, accepted, run } = sending({ session, credential })
    world.outcomes = [outcome]
    await run()
    t.same(accepted, isNoted ? [session] : [])
  }
})

/** Whether a response of this status stays here. */
async function withheld(status: number, options: Parameters<typeof sending>[0], isKeyed = false) {
  const { run, options: forwarded } = sending(options)
  await run(isKeyed ? keyed() : undefined)
  return forwarded[0]?.withholds(status)
}

await test('which responses the browser does not get', async (t) => {
  for (const status of [500, 503, 300, 302]) t.equal(await withheld(status, {}), true, `${status}`)
  for (const status of [200, 304, 400, 403, 429]) t.equal(await withheld(status, {}), false, `${status}`)
  t.equal(await withheld(401, {}), true)
  t.equal(await withheld(401, { credential: 'pat' }), false)
  for (const status of [408, 421]) {
    t.equal(await withheld(status, {}), true)
    t.equal(await withheld(status, { method: 'GET' }), false)
    t.equal(await withheld(status, {}, true), false)
  }
})

await test('a call with a key has a time from beginning to end, until its response is streamed', async (t) => {
  const { run, options } = sending()
  await run(keyed())
  await run(keyed(true, true))
  await run()
  t.same(
    options.map(({ limit }) => limit && [limit.ms, limit.applies()]),
    [[30, true], [30, false], undefined],
  )
  t.same(
    options.map(({ isSafe }) => isSafe),
    [false, false, false],
  )
})

await test('the browser of a call without a key gets the response as it comes', async (t) => {
  const { run, options, head, raw } = sending({ method: 'GET' })
  await run()
  t.equal(options[0]?.response, raw)
  options[0]?.begin(201, { etag: '"1"', 'x-ratelimit-limit': '5' })
  options[0]?.breakOff()
  t.same(head, [[201, ['cache-control', 'no-store', 'etag', '"1"', 'x-ratelimit-limit', '5']], 'hijacked', 'destroyed'])
  t.equal(options[0]?.isSafe, true)
})

await test('the response of a call with a key is broken off in its sink, not at the browser', async (t) => {
  const { run, options, head } = sending()
  const one = keyed()
  await run({ ...one, sink: Object.assign(one.sink, { breakOff: () => head.push('sink') }) })
  options[0]?.breakOff()
  t.same(head, ['sink'])
})

await test('the time until the response begins is measured for the route, in seconds', async (t) => {
  const { world, options, run } = sending()
  let now = 100_000
  t.intercept(performance, 'now', { value: () => now })
  await run()
  now += 1500
  options[0]?.onHeadersOrFailure?.()
  t.same(world.latencies, [['/path', { method: 'POST' }, 1.5]])
})
