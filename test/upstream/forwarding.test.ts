import { test, type Test } from 'tap'
import { Problem } from '../../src/problem.ts'
import { NotStarted } from '../../src/upstream/exchange.ts'
import { BodyRefused } from '../../src/upstream/request-body.ts'
import { Forwarded } from '../support/upstream/forwarded.ts'

const FAULT = new Error('the fault')
const [HEADERS_MS, STALL_MS] = [11_000, 17_000]

/** An order unless told otherwise: what its browser, undici and its caller see of it. */
const forward = (t: Test, request: ConstructorParameters<typeof Forwarded>[1] = {}): Forwarded =>
  new Forwarded(t, request, { headersMs: HEADERS_MS, stallMs: STALL_MS })

await test('a response goes to the browser piece by piece, and its headers go with the first one', async (t) => {
  const { forwarding, controller, logged, timers } = forward(t)
  forwarding.onRequestStart(controller)
  forwarding.onRequestSent()
  t.same(timers.delays, [HEADERS_MS])
  forwarding.onResponseStart(controller, 201, { 'content-length': '5' })
  t.same(timers.delays, [])
  t.same(logged(), [['headers or failure']])
  forwarding.onResponseData(controller, Buffer.from('ab'))
  t.same(logged(), [
    ['begin', 201, { 'content-length': '5' }],
    ['write', 'ab'],
  ])
  forwarding.onResponseData(controller, Buffer.from([0xe9, 0x41, 0x42]))
  t.same(logged(), [['end', 'éAB', 'latin1']], 'a small last piece is a text')
  forwarding.onResponseEnd()
  t.same(logged(), [['settled'], ['end']])
  t.same(await forwarding.outcome, { is: 'answered', status: 201 })
})

await test('a last piece that is large is not copied into a text', (t) => {
  for (const [bytes, how] of [
    [16_384, 'latin1'],
    [16_385, undefined],
  ] as const) {
    const { forwarding, controller, logged } = forward(t)
    forwarding.onResponseStart(controller, 200, { 'content-length': String(bytes) })
    logged()
    forwarding.onResponseData(controller, Buffer.alloc(bytes, 'x'))
    t.same(logged().at(-1), how ? ['end', 'x'.repeat(bytes), how] : ['end', 'x'.repeat(bytes)])
  }
  t.end()
})

await test('a 205 goes on as a 204 and is over, and at most a little of its body is read', async (t) => {
  const { forwarding, controller, logged, timers } = forward(t)
  forwarding.onResponseStart(controller, 205, {})
  t.same(logged(), [['headers or failure'], ['begin', 204, {}], ['settled'], ['end']])
  t.same(await forwarding.outcome, { is: 'answered', status: 204 })
  t.same(timers.delays, [STALL_MS])
  forwarding.onResponseData(controller, Buffer.alloc(65_536))
  t.same(logged(), [])
  forwarding.onResponseData(controller, Buffer.alloc(1))
  t.match(logged(), [['abort']])
  forwarding.onResponseError(controller, FAULT)
  t.same([logged(), timers.delays], [[], []])
})

await test('a response without a length, or without a body, ends when upstream says so', async (t) => {
  const { forwarding, controller, logged } = forward(t)
  forwarding.onResponseStart(controller, 200, {})
  forwarding.onResponseData(controller, Buffer.from('x'))
  t.same(logged(), [['headers or failure'], ['begin', 200, {}], ['write', 'x']])
  forwarding.onResponseEnd()
  t.same(logged(), [['settled'], ['end']])
  const empty = forward(t)
  empty.forwarding.onResponseStart(controller, 204, {})
  empty.forwarding.onResponseEnd()
  t.same(empty.logged(), [['headers or failure'], ['begin', 204, {}], ['settled'], ['end']])
  t.same(await empty.forwarding.outcome, { is: 'answered', status: 204 })
})

await test('upstream waits for a browser that does not read, until it reads on', (t) => {
  const { forwarding, controller, logged, response, timers } = forward(t)
  forwarding.onRequestStart(controller)
  forwarding.onResponseStart(controller, 200, {})
  response.isFull = true
  logged()
  for (const text of ['a', 'b']) forwarding.onResponseData(controller, Buffer.from(text))
  t.same(logged(), [['begin', 200, {}], ['write', 'a'], ['pause'], ['write', 'b'], ['pause']])
  t.equal(response.listenerCount('drain'), 1)
  t.same(timers.delays, [STALL_MS])
  response.emit('drain')
  t.same(logged(), [['resume']])
  t.same(timers.delays, [])
  forwarding.onResponseData(controller, Buffer.from('c'))
  t.same([timers.delays, response.listenerCount('drain')], [[STALL_MS], 1])
  forwarding.onResponseEnd()
  t.same([timers.delays, response.listenerCount('drain')], [[], 0], 'the response is over')
  t.end()
})

await test('a browser that never reads is cut off, and a GET for it too', async (t) => {
  for (const isSafe of [true, false]) {
    const { forwarding, controller, logged, response, timers } = forward(t, { isSafe })
    forwarding.onRequestStart(controller)
    forwarding.onRequestSent()
    forwarding.onResponseStart(controller, 200, {})
    response.isFull = true
    forwarding.onResponseData(controller, Buffer.from('a'))
    logged()
    timers.run()
    await new Promise(setImmediate)
    const reason = isSafe ? ['abort', 'the browser left'] : ['resume']
    t.same(logged(), [reason, ['break off']])
    t.same(timers.delays, isSafe ? [] : [STALL_MS])
    forwarding.onResponseData(controller, Buffer.from('b'))
    t.same(logged(), [], 'nothing more is written')
    forwarding.onResponseError(controller, FAULT)
    t.same(await forwarding.outcome, { is: 'browserGone', sent: 'whole', status: 200, cause: FAULT })
    t.same([timers.delays, response.listenerCount('drain')], [[], 0])
  }
})

await test('an order whose browser leaves is aborted until it is sent, and then finishes', async (t) => {
  for (const sent of ['nothing', 'part', 'whole'] as const) {
    const { forwarding, controller, logged, response, timers } = forward(t)
    forwarding.onRequestStart(controller)
    if (sent !== 'nothing') forwarding.onBodySent()
    if (sent === 'whole') forwarding.onRequestSent()
    response.emit('close')
    t.same(logged(), [sent === 'whole' ? ['resume'] : ['abort', 'the browser left']])
    response.emit('close')
    t.same(logged(), [], 'it leaves once')
    if (sent !== 'whole') continue
    forwarding.onResponseStart(controller, 200, {})
    t.same(timers.delays, [STALL_MS], 'the rest may not trickle in for ever')
    forwarding.onResponseData(controller, Buffer.from('a'))
    forwarding.onResponseEnd()
    t.same(logged(), [['headers or failure'], ['settled']])
    t.same(timers.delays, [])
    t.same(await forwarding.outcome, { is: 'browserGone', sent: 'whole', status: 200 })
  }
})

await test('what nobody gets is read up to 65,536 bytes, and for so long', async (t) => {
  const { forwarding, controller, logged, response, timers } = forward(t)
  forwarding.onRequestStart(controller)
  forwarding.onRequestSent()
  forwarding.onResponseStart(controller, 200, {})
  response.emit('close')
  t.same(timers.delays, [STALL_MS])
  logged()
  for (const bytes of [65_535, 1]) forwarding.onResponseData(controller, Buffer.alloc(bytes))
  t.same(logged(), [])
  forwarding.onResponseData(controller, Buffer.alloc(1))
  t.same(logged(), [['abort', 'the discarded response is too large to read']])
  timers.run()
  await new Promise(setImmediate)
  t.same(logged(), [['abort', 'the discarded response is not complete in time', 'TimeoutError']])
})

await test('a browser whose departure shows when its response begins gets none of it', async (t) => {
  const { forwarding, controller, logged, response } = forward(t, { begin: () => response.emit('close') })
  forwarding.onRequestStart(controller)
  forwarding.onRequestSent()
  forwarding.onResponseStart(controller, 200, { 'content-length': '1' })
  logged()
  forwarding.onResponseData(controller, Buffer.from('a'))
  t.same(logged(), [['begin', 200, { 'content-length': '1' }], ['resume']])
  forwarding.onResponseEnd()
  t.same(await forwarding.outcome, { is: 'browserGone', sent: 'whole', status: 200 })
})

await test('a status that is withheld is told, and the browser gets nothing', async (t) => {
  for (const [headers, more] of [
    [{ 'retry-after': '7' }, { retryAfter: '7' }],
    [{ 'retry-after': ['7', '8'] }, {}],
    [{}, {}],
  ] as const) {
    const { forwarding, controller, logged, timers, response } = forward(t, { withholds: (status) => status === 401 })
    forwarding.onRequestStart(controller)
    forwarding.onResponseStart(controller, 401, headers as never)
    t.same(logged(), [['headers or failure'], ['settled']])
    t.same(await forwarding.outcome, { is: 'withheld', status: 401, ...more })
    t.same(timers.delays, [STALL_MS])
    forwarding.onResponseData(controller, Buffer.alloc(65_536))
    response.emit('close')
    t.same(logged(), [])
    forwarding.onResponseData(controller, Buffer.alloc(1))
    t.same(logged(), [['abort', 'the discarded response is too large to read']])
    if (more.retryAfter) forwarding.onResponseEnd()
    else forwarding.onResponseError(controller, FAULT)
    t.same([timers.delays, logged()], [[], []])
  }
})

await test('a response that is cut breaks off what the browser has begun to read, and nothing else', async (t) => {
  for (const hasBegun of [true, false]) {
    const { forwarding, controller, logged } = forward(t)
    forwarding.onResponseStart(controller, 200, { 'retry-after': '7' })
    if (hasBegun) forwarding.onResponseData(controller, Buffer.from('a'))
    logged()
    forwarding.onResponseError(controller, FAULT)
    t.same(logged(), [['settled'], ...(hasBegun ? [['break off']] : [])])
    t.same(await forwarding.outcome, { is: 'cut', status: 200, retryAfter: '7', cause: FAULT })
  }
})

await test('without a response the outcome says why', async (t) => {
  const problem = new Problem('body_too_large')
  const parser = Object.assign(new Error('no HTTP'), { name: 'HTTPParserError' })
  for (const [cause, sent, outcome] of [
    [new NotStarted({ is: 'stale' } as never), false, { is: 'stale' }],
    [new BodyRefused(problem), true, { is: 'bodyRefused', problem }],
    [FAULT, false, { is: 'unreachable', cause: FAULT }],
    [FAULT, true, { is: 'lost', cause: FAULT, responseBegan: false }],
    [parser, true, { is: 'lost', cause: parser, responseBegan: true }],
  ] as const) {
    const { forwarding, controller, logged, timers } = forward(t)
    forwarding.onRequestStart(controller)
    if (sent) forwarding.onRequestSent()
    forwarding.onResponseError(controller, cause)
    t.same(logged(), [['headers or failure'], ['settled']])
    t.same(await forwarding.outcome, outcome)
    t.same(timers.delays, [])
  }
  const { forwarding, controller } = forward(t)
  forwarding.onRequestSent()
  forwarding.onResponseStarted()
  forwarding.onResponseError(controller, FAULT)
  t.same(await forwarding.outcome, { is: 'lost', cause: FAULT, responseBegan: true })
})

await test('a call learns its outcome, even if this server fails when the response is there', async (t) => {
  const { forwarding, controller } = forward(t, {
    onHeadersOrFailure: () => {
      throw new Error('a fault of this server')
    },
  })
  forwarding.onRequestStart(controller)
  t.throws(() => forwarding.onResponseError(controller, FAULT), /a fault/)
  t.same(await Promise.race([forwarding.outcome, new Promise((later) => void setImmediate(later))]), {
    is: 'unreachable',
    cause: FAULT,
  })
})
