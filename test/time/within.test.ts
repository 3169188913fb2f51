import { test } from 'tap'
import { within } from '../../src/time/within.ts'

const never = new Promise<string>(() => undefined)

void test('a promise that settles in time decides, and its timer ends', async (t) => {
  const ended = t.capture(globalThis, 'clearTimeout', globalThis.clearTimeout)
  t.equal(await within(60_000, Promise.resolve('found')), 'found')
  await t.rejects(within(60_000, Promise.reject(new Error('refused'))), { message: 'refused' })
  const timers = ended().map(({ args: [timer] }) => typeof timer)
  t.same(timers, ['object', 'object'])
})

void test('a promise that is late gives undefined, and its later rejection goes unnoticed', async (t) => {
  t.equal(await within(1, never), undefined)
  const { promise, reject } = Promise.withResolvers<string>()
  t.equal(await within(1, promise), undefined)
  reject(new Error('too late'))
  await new Promise((resolve) => void setImmediate(resolve))
})
