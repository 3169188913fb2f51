import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { sessionKey } from '../../src/store/keys.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { standstill } from '../../src/time/standstill.ts'
import { exactly } from '../support/exactly.ts'
import { heldReader } from '../support/sessions/held-reader.ts'

const NONE = { is: 'none' }

await test('a session that was seen live and is missing may be lost, which is told once; one that was never seen is not', async (t) => {
  const { reader, header, lost, store, sessions, cookie, pass } = await heldReader(t)
  const never = `${cookie.name}=${cookie.signer.sign('never made')}`
  t.strictSame(await reader.read(never), NONE)
  t.strictSame(await reader.use(never), NONE)
  t.same(lost, [])
  const { idleEndsAt = 0, record } = (await sessions.load('id')) ?? {}
  for (const _ of [1, 2]) {
    pass(100)
    t.match(await reader.read(header), { is: 'live' })
  }
  const seenAt = standstill.lookedAt
  pass(100)
  await store.remove(sessionKey('id'))
  for (const _ of [1, 2]) t.strictSame(await reader.read(header), NONE)
  t.match(lost, exactly({ key: sessionKey('id'), idleEndsAt, endsAt: record?.endsAt, seenAt }))
})

await test('a use counts as seen, too, and one that finds no session any more changes nothing', async (t) => {
  const { reader, header, lost, store, pass } = await heldReader(t)
  t.match(await reader.read(header), { is: 'live' })
  pass(100)
  store.extend = async () => undefined
  t.match(reader.use(header), { is: 'live' })
  const seenAt = standstill.lookedAt
  await setImmediate()
  pass(100)
  await store.remove(sessionKey('id'))
  t.strictSame(await reader.read(header), NONE)
  t.match(lost, exactly({ seenAt }))
})

await test('a store that is away loses no session, nor does a session that comes back end', async (t) => {
  const { reader, header, lost, world, store } = await heldReader(t, { isTracked: false })
  t.match(await reader.read(header), { is: 'live' })
  world.fault = new StoreUnavailable('away')
  t.match(await reader.read(header), { is: 'storeDown' })
  world.fault = undefined
  t.match(await reader.read(header), { is: 'live' })
  t.same(lost, [])
  await store.remove(sessionKey('id'))
  t.strictSame(await reader.read(header), NONE)
  t.equal(lost.length, 1)
})
