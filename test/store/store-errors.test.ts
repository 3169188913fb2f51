import { test } from 'tap'
import { Unsent } from '../../src/store/links/unsent.ts'
import { StoreUnavailable, unlessAway, wasSent } from '../../src/store/store.ts'

await test('a failure of the store names its cause, and tells whether a write may have happened', (t) => {
  const cause = new Error('no reply')
  const unsent = new Unsent(cause)
  const [lost, kept] = [new StoreUnavailable(cause), new StoreUnavailable(unsent)]
  t.match(lost, { name: 'StoreUnavailable', message: 'the session store is unavailable', cause })
  t.match(unsent, { name: 'Unsent', message: 'nothing was sent', cause })
  t.same([lost, kept, unsent, cause].map(wasSent), [true, false, true, true])
  t.end()
})

await test('what the store answers is undefined while it is away, and any other failure is one', async (t) => {
  t.equal(await unlessAway(Promise.resolve(7)), 7)
  t.equal(await unlessAway(Promise.reject(new StoreUnavailable(new Error('away')))), undefined)
  await t.rejects(unlessAway(Promise.reject(new TypeError('a fault'))), { name: 'TypeError', message: 'a fault' })
})
