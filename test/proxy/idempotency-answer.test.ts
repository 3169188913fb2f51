import { EventEmitter } from 'node:events'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { test } from 'tap'
import { AnswerSink } from '../../src/proxy/idempotency/answer-sink.ts'
import { keyOf, requiresKey } from '../../src/proxy/idempotency/key-header.ts'
import { digestOf } from '../../src/proxy/idempotency/record.ts'
import { sendAnswer } from '../../src/proxy/idempotency/repeat-call.ts'
import type { Endpoint } from '../../src/proxy/endpoint.ts'
import { answers, keyedCalls } from '../support/idempotency/keyed-call.ts'
import { replace } from '../support/time/replace.ts'

/** A browser's connection, and all that was done with it. */
class Raw extends EventEmitter {
  readonly done: unknown[] = []
  readonly req = { httpVersion: '1.1' }
  destroyed = false
  isFull = false

  writeHead(status: number, headers: unknown): this {
    this.done.push(['head', status, headers])
    return this
  }
  write(piece: Buffer): boolean {
    this.done.push(['write', piece.toString()])
    return !this.isFull
  }
  end(body?: Buffer): void {
    this.done.push(body === undefined ? ['end'] : ['end', body.toString()])
  }
  destroy(): void {
    this.done.push(['destroy'])
  }
}

/** A sink that keeps ten bytes, its browser, and what it told. */
function sinkOf({ hasBudget = false } = {}) {
  const raw = new Raw()
  const large: number[] = []
  let hijacked = 0
  const reply = {
    raw,
    baseHeaders: [],
    getHeaders: () => ({ own: 'header' }),
    hijack: () => hijacked++,
  } as unknown as FastifyReply
  const sink = new AnswerSink(reply, { maxBytes: 10, hasBudget, onLarge: (status) => large.push(status) })
  return { raw, reply, large, sink, hijacked: () => hijacked }
}

const OWN = ['cache-control', 'no-store', 'own', 'header']

await test('a response is kept whole, with its length, and the browser gets nothing of it yet', (t) => {
  const { raw, large, sink, hijacked } = sinkOf()
  sink.begin(201, { 'content-type': 'text/plain', 'x-secret': '1', 'x-ratelimit-limit': '5' })
  t.equal(sink.write(Buffer.from('hello')), true)
  sink.end('w\xf6rld', 'latin1')
  sink.breakOff()
  const headers = { 'content-type': 'text/plain', 'x-ratelimit-limit': '5', 'content-length': '10' }
  t.same(sink.answer, { status: 201, headers, body: Buffer.from('hellow\xf6rld', 'latin1') })
  t.same([sink.isStreaming, large, raw.done, hijacked()], [false, [], [], 0])
  t.equal(sink.destroyed, false)
  raw.destroyed = true
  t.equal(sink.destroyed, true)
  t.end()
})

await test('a kept response has the length that upstream said; a 204 and a 304 need none', (t) => {
  for (const [status, headers, kept] of [
    [200, { 'content-length': '3' }, { 'content-length': '3' }],
    [200, {}, { 'content-length': '0' }],
    [204, {}, {}],
    [304, {}, {}],
    [304, { 'content-length': '500' }, { 'content-length': '500' }],
  ] as const) {
    const { sink } = sinkOf()
    sink.begin(status, headers)
    sink.end()
    t.same([sink.answer.headers, sink.isStreaming], [kept, false], `${status}`)
  }
  const { sink } = sinkOf({ hasBudget: true })
  sink.begin(200, { 'x-ratelimit-limit': '5' })
  t.same(sink.answer.headers, { 'content-length': '0' }, 'what concerns all users stays here')
  t.end()
})

await test('a response of more than maxBytes is streamed from that point on', (t) => {
  const { raw, large, sink, hijacked } = sinkOf()
  sink.begin(200, { 'content-length': '10', etag: '"1"' })
  t.equal(sink.write(Buffer.alloc(10, 'a')), true)
  t.equal(sink.isStreaming, false)
  raw.isFull = true
  t.equal(sink.write(Buffer.from('b')), false)
  t.same([sink.isStreaming, large, hijacked()], [true, [200], 1])
  t.equal(sink.answer.body.length, 0, 'what the browser has got takes no memory any more')
  raw.isFull = false
  t.equal(sink.write(Buffer.from('c')), true)
  raw.isFull = true
  t.equal(sink.write(Buffer.from('d')), false, 'upstream waits for the browser')
  let drains = 0
  let closes = 0
  sink.on('drain', () => drains++).on('close', () => closes++)
  raw.emit('drain')
  raw.emit('close')
  t.same([drains, closes], [1, 1])
  sink.end(Buffer.from('e'))
  sink.breakOff()
  t.same(raw.done, [
    ['head', 200, [...OWN, 'etag', '"1"', 'content-length', '10']],
    ['write', `${'a'.repeat(10)}b`],
    ['write', 'c'],
    ['write', 'd'],
    ['write', 'e'],
    ['end'],
    ['destroy'],
  ])
  t.end()
})

await test('a response that says how large it is is streamed at once', (t) => {
  const { raw, large, sink } = sinkOf()
  sink.begin(200, { 'content-length': '11' })
  t.same([sink.isStreaming, large], [true, [200]])
  sink.end()
  t.same(raw.done, [['head', 200, [...OWN, 'content-length', '11']], ['end']])
  t.end()
})

await test('a large response of which the browser has left is taken to its end', (t) => {
  const { raw, large, sink, hijacked } = sinkOf()
  raw.destroyed = true
  let closes = 0
  sink.on('close', () => closes++)
  sink.begin(200, { 'content-length': '11' })
  t.same([sink.isStreaming, large, closes, hijacked(), raw.done], [true, [200], 1, 1, []])
  const chunked = sinkOf()
  chunked.sink.begin(200, {})
  chunked.raw.destroyed = true
  t.equal(chunked.sink.write(Buffer.alloc(11)), true, 'nobody has to be waited for')
  t.end()
})

await test('an answer is sent whole, and says whether it is that of an earlier request', (t) => {
  for (const isReplayed of [true, false]) {
    const { raw, reply, hijacked } = sinkOf()
    const answer = { status: 201, headers: { etag: '"1"', 'x-ratelimit-limit': '5' }, body: Buffer.from('done') }
    sendAnswer(reply, answer, true, isReplayed)
    const headers = [...OWN, 'etag', '"1"', ...(isReplayed ? ['idempotency-replayed', 'true'] : [])]
    t.same(
      [raw.done, hijacked()],
      [
        [
          ['head', 201, headers],
          ['end', 'done'],
        ],
        1,
      ],
    )
  }
  const { raw, reply } = sinkOf()
  sendAnswer(reply, { status: 200, headers: {}, body: Buffer.alloc(0) }, false)
  t.notMatch(raw.done, [['head', 200, /idempotency/]])
  t.same(raw.done[0], ['head', 200, OWN])
  t.end()
})

await test('an answer whose head cannot be written leaves its call to the error handler', (t) => {
  const { raw, reply, hijacked } = sinkOf()
  replace(t, raw, 'writeHead', () => {
    throw new TypeError('planted')
  })
  t.throws(() => sendAnswer(reply, { status: 200, headers: {}, body: Buffer.from('done') }, false), /planted/)
  t.same([hijacked(), raw.done], [0, []])
  t.end()
})

/** The key of a request with these headers. */
function key(...values: string[]): string | undefined {
  const headers = values.length === 0 ? {} : { 'idempotency-key': values.join(', ') }
  const rawHeaders = values.flatMap((value) => ['Idempotency-Key', value])
  return keyOf({ raw: { headers, rawHeaders } } as unknown as FastifyRequest, false)
}

await test('a key is 1 to 255 printable ASCII characters, quoted or not, and comes once', (t) => {
  t.equal(key(), undefined)
  t.equal(key('k'), 'k')
  t.equal(key(' ~'), ' ~')
  t.equal(key('x'.repeat(255)), 'x'.repeat(255))
  t.equal(key('a"b'), 'a"b')
  t.equal(key('"k"'), 'k')
  t.equal(key(String.raw`"a\"b\\c"`), String.raw`a"b\c`)
  t.equal(key(`"${'x'.repeat(255)}"`), 'x'.repeat(255))
  const refused = ['', 'x'.repeat(256), 'a\tb', 'caf\xe9', '"k', 'k"', '"', '""', '"a"b"', String.raw`"a\b"`, '"k" ']
  for (const each of [...refused, `"${'x'.repeat(256)}"`, '"a\x7f"', '"a\x1f"', ' "k"'])
    t.throws(() => key(each), { code: 'bad_request', message: /1 to 255 printable/ }, each)
  t.throws(() => key('a', 'b'), { code: 'bad_request' })
  t.throws(() => keyOf({ raw: { headers: {} } } as unknown as FastifyRequest, true), {
    code: 'idempotency_key_required',
  })
  t.end()
})

await test('REQUIRE_IDEMPOTENCY_KEY names calls, or all of them', (t) => {
  const endpoint = { path: '/a' } as Endpoint
  t.equal(requiresKey(endpoint, { requiredFor: 'all' }), true)
  t.equal(requiresKey(endpoint, { requiredFor: new Set(['/a']) }), true)
  t.equal(requiresKey(endpoint, { requiredFor: new Set(['/b']) }), false)
  t.end()
})

await test('a call is another one if its method, its path or its body is', (t) => {
  const calls = [
    digestOf('POST', '/a', null),
    digestOf('PUT', '/a', null),
    digestOf('POST', '/b', null),
    digestOf('POST', '/a', Buffer.from('body')),
    digestOf('POST', '/a', Buffer.from('other')),
  ]
  t.equal(new Set(calls).size, calls.length)
  t.equal(digestOf('POST', '/a', Buffer.alloc(0)), calls[0])
  t.match(calls[0], /^[\w-]{43}$/)
  t.end()
})

await test('with a budget, neither a response nor its repetition tells the limits of upstream, whenever it was kept', async (t) => {
  for (const [atFirst, later] of [
    [false, false],
    [false, true],
    [true, true],
  ] as const) {
    const { world, call, nextBrowser } = await keyedCalls()
    world.hasBudget = atFirst
    world.upstream = answers(200, 'done', { 'x-ratelimit-remaining': '7' })
    await call('key')
    t.equal(world.raw.headers.includes('x-ratelimit-remaining'), !atFirst)
    world.hasBudget = later
    nextBrowser()
    await call('key')
    t.equal(world.raw.headers.includes('x-ratelimit-remaining'), !later)
  }
})
