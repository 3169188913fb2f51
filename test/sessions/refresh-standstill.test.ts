import { test } from 'tap'
import { partKey } from '../../src/store/keys.ts'
import { tokens } from '../support/login/token-endpoint.ts'
import { tokenWorld } from '../support/login/token-world.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'

await test('an instance that stands still under the refresh lock does not use the refresh token once another instance has', async (t) => {
  const { here, there, session, store, endpoint } = await tokenWorld(t)
  const suspend = timeAhead(t)
  const old = await session(0)
  endpoint.behaviour = tokens({ access_token: 'second', refresh_token: 'refresh-2' })
  const read = store.read.bind(store)
  store.read = async (key) => {
    store.read = read
    const value = await read(key)
    // The lock has expired, and the reply that arrived before is still to be handled.
    suspend(60_000)
    await store.remove(partKey(old.key, 'refresh'))
    t.match(await there.renewed(old), { is: 'good' })
    return value
  }
  t.match(await here.renewed(old), { is: 'good', session: { record: { accessToken: 'second' } } })
  t.same(
    endpoint.forms.map((form) => form.get('refresh_token')),
    ['refresh-1'],
  )
})
