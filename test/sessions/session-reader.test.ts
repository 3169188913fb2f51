import { setImmediate } from 'node:timers/promises'
import { test } from 'tap'
import { sessionKey } from '../../src/store/keys.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { heldReader, IDLE_MS, SECRET } from '../support/sessions/held-reader.ts'
import { sessionRecord } from '../support/sessions/session-instance.ts'

const NONE = { is: 'none' }
const NEXT = 'the second secret of a test'

await test('a request without a valid cookie has no session, and costs nothing', async (t) => {
  const { reader, header, news } = await heldReader(t)
  for (const each of [undefined, '', `${header}x`, `${header}; ${header}`]) {
    t.strictSame(reader.read(each), NONE)
    t.strictSame(reader.use(each), NONE)
    t.strictSame(await reader.extend(each), NONE)
  }
  t.same(news(), [])
})

await test('a session is read once, and then found at once, as long as the store reports changes', async (t) => {
  for (const isTracked of [true, false]) {
    const { reader, header, news } = await heldReader(t, { isTracked })
    t.match(await reader.read(header), { is: 'live', session: { id: 'id', key: sessionKey('id') } })
    t.same(news(), ['read'])
    const again = reader.read(header)
    t.equal('then' in again, !isTracked)
    t.match(await again, { is: 'live', session: { id: 'id' } })
    t.same(news(), isTracked ? [] : ['read'])
    const used = reader.use(header)
    t.match(used, { is: 'live', session: { id: 'id' } }, 'for a use a moment ago is enough')
    t.same(news(), [])
  }
})

await test('a signature is verified once, and again when the secrets change', async (t) => {
  const { reader, header, secrets, cookie } = await heldReader(t)
  let verified = 0
  const verify = cookie.verify.bind(cookie)
  cookie.verify = (value) => (verified++, verify(value))
  for (const _ of [1, 2, 3]) t.match(await reader.read(header), { is: 'live' })
  t.equal(verified, 1)
  secrets.change([NEXT, SECRET])
  t.match(await reader.read(header), { is: 'live' })
  t.equal(verified, 2)
  secrets.change([NEXT])
  t.strictSame(reader.read(header), NONE)
})

await test('a store that is away is told, and any other fault is thrown', async (t) => {
  const { reader, header, world } = await heldReader(t)
  const cause = new StoreUnavailable('away')
  world.fault = cause
  for (const found of [reader.read(header), reader.use(header), reader.extend(header), reader.reload('id')]) {
    t.strictSame(await found, { is: 'storeDown', cause })
  }
  world.fault = new TypeError('planted')
  await t.rejects(async () => reader.read(header), /planted/)
})

await test('a use moves the idle limit once it is due, in the background; a reading does not', async (t) => {
  const { reader, header, news, pass, sessions } = await heldReader(t)
  t.match(await reader.use(header), { is: 'live' })
  await setImmediate()
  t.same(news(), ['read'], 'it has just been made')
  pass(1)
  t.match(reader.read(header), { is: 'live' })
  t.same(news(), [])
  const before = Date.now()
  t.match(reader.use(header), { is: 'live' })
  await setImmediate()
  t.same(news(), ['extend'])
  t.ok(Number((await sessions.load('id'))?.idleEndsAt) >= before + IDLE_MS)
  news()
  pass(400)
  t.match(reader.use(header), { is: 'live' })
  await setImmediate()
  t.same(news(), [], 'it is not due any more')
})

await test('a use of a session that is not cached reads it and moves its limit at once, if that is known to be due', async (t) => {
  const { reader, header, news, pass } = await heldReader(t)
  await reader.use(header)
  reader.near.load = () => Promise.reject(new Error('read without need'))
  pass(400)
  reader.near.peek = () => undefined
  t.match(await reader.use(header), { is: 'live' })
  t.same(news(), ['read', 'extend'])
  await setImmediate()
  t.same(news(), [], 'it has moved')
})

await test('a use of a session that is not cached, whose limit is known not to be due, only reads it', async (t) => {
  const { reader, header, news } = await heldReader(t)
  for (const _ of [1, 2]) {
    reader.near.peek = () => undefined
    t.match(await reader.use(header), { is: 'live' })
    await setImmediate()
    t.same(news(), ['read'])
  }
})

await test('after an idle limit could not be moved, none is moved for a second', async (t) => {
  for (const fault of [undefined, new StoreUnavailable('away')]) {
    const { reader, header, news, pass, world } = await heldReader(t)
    const use = async (): Promise<string[]> => {
      t.match(await reader.use(header), { is: 'live' })
      await setImmediate()
      return news()
    }
    await use()
    pass(1)
    Object.assign(world, { isReadOnly: true, fault })
    t.match(reader.use(header), { is: 'live' })
    await setImmediate()
    t.same(news(), ['extend'])
    world.fault = undefined
    await reader.read(header)
    news()
    for (const [ms, expected] of [
      [0, []],
      [499, []],
      [500, []],
      [1, ['extend']],
    ] as const) {
      pass(ms)
      t.same(await use(), expected, `${fault?.message ?? 'read-only'}, ${ms} ms later`)
    }
  }
})

await test('a use that has read the session moves its limit as well, and then knows how far', async (t) => {
  const { reader, header, news, pass, cookie, sessions } = await heldReader(t)
  pass(1)
  t.match(await reader.use(header), { is: 'live' })
  await setImmediate()
  t.same(news(), ['read', 'extend'])
  await sessions.create('other', sessionRecord())
  pass(1)
  t.match(await reader.use(`${cookie.name}=${cookie.signer.sign('other')}`), { is: 'live' })
  await setImmediate()
  t.same(news(), ['read', 'extend'], 'another session, at once')
  reader.near.peek = () => undefined
  t.match(await reader.use(header), { is: 'live' })
  t.same(news(), ['read'])
})

await test('an extension is live once the idle limit has moved where it was due', async (t) => {
  const late = await heldReader(t)
  late.pass(1)
  t.match(await late.reader.extend(late.header), { is: 'live' })
  t.same(late.news(), ['read', 'extend'])
  const { reader, header, news, pass, world, store } = await heldReader(t)
  t.match(await reader.extend(header), { is: 'live' })
  t.same(news(), ['read'], 'it is not due')
  pass(1)
  const before = Date.now()
  const found = await reader.extend(header)
  t.same(news(), ['extend'])
  t.ok(found.is === 'live' && found.session.idleEndsAt >= before + IDLE_MS)
  for (const _ of Array.from({ length: 150 })) {
    pass(400)
    void reader.read(header)
  }
  world.isReadOnly = true
  t.match(await reader.extend(header), {
    is: 'storeDown',
    cause: { cause: { message: 'the idle limit has not moved' } },
  })
  world.fault = new StoreUnavailable('away')
  t.match(await reader.extend(header), { is: 'storeDown', cause: world.fault })
  world.fault = undefined
  await store.remove(sessionKey('id'))
  t.strictSame(await reader.extend(header), NONE)
})

await test('a session that was read earlier is looked at again, and moved only by a use', async (t) => {
  for (const isTracked of [true, false]) {
    const { reader, news, pass, sessions } = await heldReader(t, { isTracked })
    const session = await sessions.load('id')
    if (session === undefined) throw new Error('not loaded')
    await reader.reload('id')
    news()
    for (const [isUse, ms, expected] of [
      [false, 0, isTracked ? [] : ['read']],
      [true, 0, isTracked ? [] : ['extend']],
      [false, 1, isTracked ? [] : ['read']],
      [true, 0, ['extend']],
    ] as const) {
      pass(ms)
      t.match(await reader.recheck(session, isUse), { is: 'live', session: { id: 'id' } })
      t.same(news(), expected)
    }
  }
})
