import { test, type Test } from 'tap'
import { Forwarded } from '../support/upstream/forwarded.ts'
import { replace } from '../support/time/replace.ts'

const [HEADERS_MS, STALL_MS] = [11_000, 17_000]
const LATE = ['abort', 'upstream did not respond in time', 'TimeoutError']

const forward = (t: Test, request: ConstructorParameters<typeof Forwarded>[1] = {}): Forwarded =>
  new Forwarded(t, request, { headersMs: HEADERS_MS, stallMs: STALL_MS })

/** The time of the timers that are set is over, and what had arrived is read. */
async function over({ timers }: Forwarded): Promise<void> {
  timers.run()
  await new Promise(setImmediate)
}

await test('an order without a response in time is aborted; a GET is left to undici', async (t) => {
  const order = forward(t)
  order.forwarding.onRequestStart(order.controller)
  t.same(order.timers.delays, [], 'it is not sent yet')
  order.forwarding.onRequestSent()
  order.forwarding.onRequestSent()
  t.same(order.timers.delays, [HEADERS_MS])
  await over(order)
  t.same(order.logged(), [LATE])
  const cause = new DOMException('upstream did not respond in time', 'TimeoutError')
  order.forwarding.onResponseError(order.controller, cause)
  t.same(await order.forwarding.outcome, { is: 'timeout', cause })
  const get = forward(t, { isSafe: true })
  get.forwarding.onRequestStart(get.controller)
  get.forwarding.onRequestSent()
  t.same(get.timers.delays, [])
})

await test('an order that has its answer, or is over, before it is wholly sent waits for none', (t) => {
  const early = forward(t)
  early.forwarding.onResponseStart(early.controller, 400, {})
  early.forwarding.onRequestSent()
  t.same(early.timers.delays, [])
  const failed = forward(t)
  failed.forwarding.onResponseError(failed.controller, new Error('the fault'))
  failed.forwarding.onRequestSent()
  failed.forwarding.onResponseError(failed.controller, new Error('another'))
  t.same(failed.timers.delays, [])
  t.same(failed.logged(), [['headers or failure'], ['settled']], 'it settles once')
  t.end()
})

await test('ten informational responses may come, and only within the time for the first response', (t) => {
  let now = 1000
  replace(t, performance, 'now', () => now)
  const many = forward(t, { isSafe: true })
  for (let each = 0; each < 10; each++) many.forwarding.onResponseStart(many.controller, each === 0 ? 199 : 103, {})
  t.same([many.logged(), many.timers.delays], [[], []])
  many.forwarding.onResponseStart(many.controller, 103, {})
  t.same(many.logged(), [['abort', 'too many 1xx responses']])
  const slow = forward(t)
  slow.forwarding.onResponseStart(slow.controller, 103, {})
  t.same(slow.timers.delays, [], 'an order that is not wholly sent is not waited for')
  slow.forwarding.onRequestSent()
  now += HEADERS_MS
  slow.forwarding.onResponseStart(slow.controller, 103, {})
  t.same([slow.logged(), slow.timers.delays], [[], [HEADERS_MS]])
  now += 1
  slow.forwarding.onResponseStart(slow.controller, 103, {})
  t.same(slow.logged(), [['abort', 'only informational responses have arrived in time', 'TimeoutError']])
  t.end()
})

await test('an informational response lets an order that is sent wait anew', (t) => {
  const { forwarding, controller, timers } = forward(t)
  forwarding.onRequestSent()
  timers.run()
  t.same(timers.delays, [])
  forwarding.onResponseStart(controller, 103, {})
  t.same(timers.delays, [HEADERS_MS])
  forwarding.onResponseStart(controller, 200, {})
  t.same(timers.delays, [])
  t.end()
})

await test('a limit of the whole exchange counts from its start, and only if it applies in the end', async (t) => {
  let applies = false
  const world = forward(t, { limit: { ms: 500, applies: () => applies } })
  const { forwarding, controller, timers, logged } = world
  t.same(timers.delays, [])
  forwarding.onRequestStart(controller)
  forwarding.onRequestStart(controller)
  t.same(timers.delays, [500], 'one that begins again has its time anew')
  await over(world)
  t.same(logged(), [])
  applies = true
  forwarding.onRequestStart(controller)
  forwarding.onResponseStart(controller, 200, {})
  forwarding.onResponseData(controller, Buffer.from('a'))
  t.same(timers.delays, [500], 'however much has arrived')
  logged()
  await over(world)
  t.same(logged(), [['abort', 'the response is not complete in time', 'TimeoutError']])
  forwarding.onRequestStart(controller)
  forwarding.onResponseEnd()
  t.same(timers.delays, [])
  forwarding.onRequestStart(controller)
  t.same(timers.delays, [], 'it is over')
})
