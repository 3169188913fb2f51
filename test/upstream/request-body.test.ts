import type { IncomingMessage } from 'node:http'
import { PassThrough, Readable } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { BodyRefused, discard, JoinedPieces, NO_BODY, receiveBody } from '../../src/upstream/request-body.ts'
import { HeldTimers } from '../support/time/held-timers.ts'

const WHOLE = 65_536
const CHUNKED = { 'transfer-encoding': 'chunked' }

/** How many listeners a source has for each event. */
function listenersOf(source: PassThrough): number[] {
  return ['data', 'end', 'close'].map((name) => source.listenerCount(name))
}

/** A request whose body a test sends, and what becomes of it. */
function requestOf(headers: Record<string, string> = CHUNKED, maxBytes = 1e6) {
  const source = Object.assign(new PassThrough({ highWaterMark: 1e6 }), { headers })
  const body = receiveBody(source as unknown as IncomingMessage, maxBytes)
  body.catch(() => undefined)
  return { source, body }
}

/** A body that is streamed, its content so far, and how it ends. */
async function streamed(t: Test, bytes = WHOLE + 1, maxBytes = 1e6) {
  const windows = new HeldTimers(t, 'setTimeout', 5000)
  const { source, body } = requestOf(CHUNKED, maxBytes)
  source.write(Buffer.alloc(bytes, 1))
  const content = (await body)?.content as Readable
  t.teardown(() => content.destroy())
  const end = new Promise<Error | undefined>((resolve) => {
    content.once('end', () => resolve(undefined)).once('error', resolve)
  })
  const endWindow = async () => {
    windows.run()
    await turn()
    await turn()
  }
  return { source, content, end, windows, endWindow }
}

await test('a request without a body, or with an empty one, has none', async (t) => {
  t.equal(await requestOf({}).body, NO_BODY)
  t.equal(await requestOf({ 'content-length': '0' }).body, NO_BODY)
  t.equal(await requestOf({ 'content-length': '0', ...CHUNKED }).body, NO_BODY)
  const { source, body } = requestOf()
  source.end()
  t.equal(await body, NO_BODY)
  t.same(NO_BODY, { is: 'whole', content: null, headers: [] })
})

await test('a small body is sent whole with its length, however it came', async (t) => {
  const { source, body } = requestOf()
  source.write('one ')
  await turn()
  source.write('two ')
  await turn()
  source.end('three')
  t.same(await body, { is: 'whole', content: Buffer.from('one two three'), headers: ['content-length', '13'] })
  const largest = requestOf()
  largest.source.end(Buffer.alloc(WHOLE))
  t.match(await largest.body, { is: 'whole', headers: ['content-length', String(WHOLE)] })
  t.same(listenersOf(largest.source), listenersOf(new PassThrough()))
})

await test('a long body ends, also if it had come as a whole before it was read', async (t) => {
  const source = Object.assign(new PassThrough({ highWaterMark: 1e6 }), { headers: CHUNKED })
  source.write(Buffer.alloc(WHOLE))
  source.end('end')
  await turn()
  const body = await receiveBody(source as unknown as IncomingMessage, 1e6)
  const content = body?.content as Readable
  t.equal(Buffer.concat(await content.toArray()).length, WHOLE + 3)
})

await test('a body that is too large is refused, by its length or once it has come', async (t) => {
  const tooLarge = { code: 'body_too_large' }
  await t.rejects(requestOf({ 'content-length': '11' }, 10).body, tooLarge)
  const fits = requestOf({ 'content-length': '10' }, 10)
  fits.source.end('0123456789')
  t.match(await fits.body, { is: 'whole', headers: ['content-length', '10'] })
  const chunked = requestOf(CHUNKED, 10)
  chunked.source.write('01234567890')
  await t.rejects(chunked.body, tooLarge)
  t.equal(chunked.source.isPaused(), false, 'its rest is read and dropped')
  const long = requestOf(CHUNKED, WHOLE + 10)
  long.source.write(Buffer.alloc(WHOLE))
  await turn()
  long.source.write(Buffer.alloc(11))
  await t.rejects(long.body, tooLarge)
  const exact = requestOf(CHUNKED, WHOLE + 10)
  exact.source.write(Buffer.alloc(WHOLE))
  await turn()
  exact.source.write(Buffer.alloc(10))
  t.match(await exact.body, { is: 'streamed' })
})

await test('a browser that leaves before its body is there sends none', async (t) => {
  const { source, body } = requestOf()
  source.write('part')
  source.destroy()
  t.equal(await body, undefined)
  const gone = Object.assign(new PassThrough(), { headers: CHUNKED }).destroy()
  await turn()
  t.equal(await receiveBody(gone as unknown as IncomingMessage, 10), undefined)
})

await test('a longer body is a stream of all that has come and comes, with its length where that is known', async (t) => {
  const { source, body } = requestOf({ 'content-length': String(WHOLE + 4) }, WHOLE + 4)
  source.write(Buffer.alloc(WHOLE, 1))
  await turn()
  source.write(Buffer.from('23'))
  const received = await body
  const stream = received?.content as Readable
  t.match(received, { is: 'streamed', headers: ['content-length', String(WHOLE + 4)] })
  t.equal(source.isPaused() || source.readableFlowing === false, true, 'until upstream reads')
  source.end(Buffer.from('45'))
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  t.ok(Buffer.concat(chunks).equals(Buffer.concat([Buffer.alloc(WHOLE, 1), Buffer.from('2345')])))
  const unknown = requestOf()
  unknown.source.write(Buffer.alloc(WHOLE + 1))
  const { content, headers } = (await unknown.body) as { content: Readable; headers: unknown }
  t.same(headers, [])
  discard(content)
  t.equal(content.destroyed, true)
  t.equal(unknown.source.isPaused(), false, 'the rest is read and dropped')
  t.same(listenersOf(unknown.source), listenersOf(new PassThrough()))
  discard(Buffer.from('x'))
  discard(null)
})

await test('a stream that brings more than it may is refused', async (t) => {
  const { source, content, end } = await streamed(t, WHOLE + 1, WHOLE + 3)
  content.resume()
  source.write('23')
  await turn()
  t.equal(content.destroyed, false)
  source.write('4')
  const error = await end
  t.ok(error instanceof BodyRefused)
  t.match(error, { name: 'BodyRefused', problem: { code: 'body_too_large' }, message: 'The request body is too large' })
})

await test('a stream whose browser leaves fails', async (t) => {
  const { source, content, end } = await streamed(t)
  content.resume()
  source.destroy()
  t.match(await end, { message: 'the browser left' })
})

await test('a stream that comes too slowly is refused, and its connection is closed', async (t) => {
  const { source, content, end, windows, endWindow } = await streamed(t)
  t.equal(windows.size, 0, 'no window before upstream reads')
  content.resume()
  await turn()
  t.equal(windows.size, 1)
  source.write(Buffer.alloc(16_384))
  await turn()
  await endWindow()
  t.equal(content.destroyed, false)
  t.equal(windows.size, 1)
  source.write(Buffer.alloc(16_383))
  await turn()
  await endWindow()
  t.match(await end, {
    problem: {
      code: 'bad_request',
      status: 408,
      message: 'The body came too slowly.',
      details: { headers: { connection: 'close' } },
    },
  })
  t.equal(windows.size, 0)
})

await test('a window in which upstream was slower than the browser does not count', async (t) => {
  const { source, content, endWindow } = await streamed(t)
  content.resume()
  await turn()
  content.pause()
  for (const bytes of [20_000, 20_000, 20_000]) {
    source.write(Buffer.alloc(bytes))
    await turn()
  }
  await endWindow()
  source.write(Buffer.alloc(6000))
  await turn()
  t.equal(source.isPaused(), true)
  await endWindow()
  t.equal(content.destroyed, false)
})

await test('once all has come no window counts', async (t) => {
  const { source, content, end, windows } = await streamed(t)
  content.resume()
  await turn()
  source.end('end')
  t.equal(await end, undefined)
  t.equal(windows.size, 0)
})

await test('an error before anybody reads the stream ends no process', async (t) => {
  const { source, content } = await streamed(t)
  content.removeAllListeners('end')
  source.destroy()
  await turn()
  t.equal(content.destroyed, true)
})

await test('pieces are joined in one buffer, which the first alone is itself', (t) => {
  const pieces = new JoinedPieces()
  t.same([pieces.length, pieces.joined()], [0, Buffer.alloc(0)])
  const first = Buffer.from('ab')
  pieces.add(first)
  t.equal(pieces.joined().buffer, first.buffer)
  for (const text of ['c', 'defgh', '', 'ijklmnopqrstuvwxyz']) pieces.add(Buffer.from(text))
  t.same([pieces.length, pieces.joined().toString()], [26, 'abcdefghijklmnopqrstuvwxyz'])
  t.equal(first.toString(), 'ab')
  t.end()
})
