import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { receiveBody } from '../../src/upstream/request-body.ts'
import { HeldTimers } from '../support/time/held-timers.ts'

/** A body of which 70 kB have arrived, and the end of a window. */
async function streamed(t: Test) {
  const windows = new HeldTimers(t, 'setTimeout', 5000)
  const source = Object.assign(new PassThrough(), { headers: { 'transfer-encoding': 'chunked' } })
  source.write(Buffer.alloc(70_000))
  const body = await receiveBody(source as unknown as IncomingMessage, 1e9)
  if (body?.is !== 'streamed') throw new Error('the body is not streamed')
  const { content } = body
  t.teardown(() => content.destroy())
  const endWindow = async (): Promise<boolean> => {
    windows.run()
    await turn()
    await turn()
    return content.destroyed
  }
  return { source, content, endWindow }
}

await test('a window in which upstream did not read does not make the browser slow, however many there are', async (t) => {
  const { source, content, endWindow } = await streamed(t)
  for (const count of [1, 2, 3]) t.notOk(await endWindow(), `window ${count}`)
  content.resume()
  source.write(Buffer.alloc(20_000))
  await turn()
  t.notOk(await endWindow(), 'it began while upstream did not read')
  source.write(Buffer.alloc(16_384))
  await turn()
  t.notOk(await endWindow(), 'as much as a slow phone')
  content.pause()
  source.write(Buffer.alloc(200_000))
  await turn()
  for (const count of [1, 2]) t.notOk(await endWindow(), `upstream pauses, window ${count}`)
})

await test('a browser that sends less than 16 KiB in a window that upstream read through is slow', async (t) => {
  const { source, content, endWindow } = await streamed(t)
  content.resume()
  source.write(Buffer.alloc(20_000))
  await turn()
  t.notOk(await endWindow())
  source.write(Buffer.alloc(16_383))
  await turn()
  t.ok(await endWindow())
})

await test('a window that ends while this server keeps a piece back does not make the browser slow', async (t) => {
  const { source, content, endWindow } = await streamed(t)
  const { promise, resolve } = Promise.withResolvers<void>()
  content.resume()
  source.write(Buffer.alloc(20_000))
  await turn()
  t.notOk(await endWindow())
  content.mayGoOn = () => promise
  source.write('kept back')
  await turn()
  for (const count of [1, 2]) t.notOk(await endWindow(), `window ${count}`)
  resolve()
  await turn()
  t.notOk(await endWindow(), 'it began while the piece was kept back')
  t.ok(await endWindow(), 'nothing has come since')
})
