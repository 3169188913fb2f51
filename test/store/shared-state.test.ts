import { test } from 'tap'
import { SharedState } from '../../src/store/shared-state.ts'

await test('a change that throws fails alone: its caller hears of it, and the next change is made', async (t) => {
  const state = new SharedState({ nothing: 0, parse: Number, format: String, ttlMs: 1000 }, () => undefined)
  const planted = new Error('planted')
  const failed = await state.change(() => {
    throw planted
  })
  t.match(failed, { state: 0, isRead: false, isShared: false })
  t.equal(failed.cause, planted)
  t.match(await state.change((count) => count + 1), { state: 1, cause: undefined })
})
