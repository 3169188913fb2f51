import type { IncomingMessage } from 'node:http'
import { PassThrough, type Readable } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { Problem } from '../../src/problem.ts'
import { receiveBody } from '../../src/upstream/request-body.ts'

const BEGUN = Buffer.alloc(65_537)
const CHUNKED = { 'transfer-encoding': 'chunked' }

/** A body that has begun to stream, and how it ends. */
async function streamed(t: Test, headers: Record<string, string> = CHUNKED) {
  const source = Object.assign(new PassThrough({ highWaterMark: 1e6 }), { headers })
  const received = receiveBody(source as unknown as IncomingMessage, 1e6)
  source.write(BEGUN)
  const body = await received
  if (body?.is !== 'streamed') throw new Error('the body is not streamed')
  const { content } = body
  t.teardown(() => content.destroy())
  const end = new Promise<Error | undefined>((resolve) => {
    content.once('end', () => resolve(undefined)).once('error', resolve)
  })
  return { source, content, end }
}

await test('a stream goes on piece by piece, and ends, as long as it may', async (t) => {
  for (const [headers, endsWith] of [
    [CHUNKED, { problem: { code: 'orders_paused' } }],
    [{ 'content-length': String(BEGUN.length + 2) }, undefined],
  ] as const) {
    const { source, content, end } = await streamed(t, headers)
    const asked: PromiseWithResolvers<void>[] = []
    content.mayGoOn = () => {
      asked.push(Promise.withResolvers())
      return asked.at(-1)?.promise ?? Promise.resolve()
    }
    const pieces: Buffer[] = []
    content.on('data', (piece: Buffer) => pieces.push(piece))
    await turn()
    source.write('23')
    await turn()
    t.equal(source.isPaused(), true)
    source.end()
    await turn()
    t.same([pieces.length, asked.length], [1, 1], 'nothing goes on while it waits')
    asked[0]?.resolve()
    await turn()
    t.equal(pieces.at(-1)?.toString(), '23')
    asked[1]?.reject(new Problem('orders_paused'))
    t.match(await end, endsWith)
  }
})

await test('a stream that is given up, or may not go on, while a piece waits drops the rest', async (t) => {
  for (const giveUp of [(content: Readable) => content.destroy(), (_: Readable, refuse: () => void) => refuse()]) {
    const { source, content } = await streamed(t)
    const { promise, reject } = Promise.withResolvers<void>()
    content.mayGoOn = () => promise
    content.on('error', () => undefined).resume()
    await turn()
    source.write('2')
    await turn()
    t.equal(source.isPaused(), true)
    giveUp(content, () => reject(new Problem('orders_paused')))
    await turn()
    source.write('the rest')
    await turn()
    t.equal(source.readableLength, 0)
  }
})
