import { test } from 'tap'
import { Endings } from '../../src/sessions/endings.ts'
import { clockAhead } from '../support/time/clock-ahead.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { CLAIM_MS, endedWorld, HOUR_MS, KEY, LEFT, never, settled } from '../support/sessions/ended-world.ts'

await test('an instance that stopped before it revoked is followed by whoever repeats the logout, and the end has one line', async (t) => {
  const { recorded, revoked, instance, left, claims } = await endedWorld(t)
  const one = instance('one', never)
  const other = instance('other')
  t.match(await one.logout(), { existed: true })
  await settled()
  t.match(await left(), /^[\w-]+,recorded,logout,v1\.sealed$/, 'as long as the revocation takes')
  one.stop()
  t.match(await other.logout(), { existed: false, record: { accessToken: 'token' } })
  await other.logout()
  t.same(revoked, ['one'], 'the first may merely be slow')
  t.equal(claims.size, 1, 'however often it is repeated')
  claims.run()
  await settled()
  t.same([recorded, revoked], [['one logout'], ['one', 'other']])
  t.equal(await left(), undefined)
})

await test('an instance that stopped before it heard that the end is its own is followed in everything', async (t) => {
  const { recorded, revoked, instance, left, claims } = await endedWorld(t)
  const one = instance('one')
  const other = instance('other')
  one.lossy.hold('replace', never)
  void one.logout()
  await settled()
  t.match(await left(), /^[\w-]+,claimed,logout,v1\.sealed$/)
  await other.endings.end(KEY, 'refused', { id: 'id' }, true)
  claims.run()
  await settled()
  t.same([recorded, revoked], [['other logout'], ['other']])
  t.equal(await left(), undefined)
})

await test('an end whose line an instance could not write before it stopped is recorded by whoever repeats the logout', async (t) => {
  const { recorded, revoked, instance, left, claims } = await endedWorld(t)
  const one = instance('one')
  one.endings.onRecord(() => never)
  const other = instance('other')
  await one.logout()
  await settled()
  t.match(await left(), /,claimed,/, 'although its tokens are revoked')
  await other.logout()
  claims.run()
  await settled()
  t.same(
    [recorded, revoked],
    [
      ['one logout', 'other logout'],
      ['one', 'other'],
    ],
  )
  t.equal(await left(), undefined)
})

await test('an instance that ends says before that it has recorded an end, so that nobody else does', async (t) => {
  const retries = new HeldTimers(t, 'setTimeout', 250)
  const { instance, left } = await endedWorld(t)
  const one = instance('one')
  const written = Promise.withResolvers<void>()
  one.endings.onRecord(() => written.promise)
  await one.logout()
  await settled()
  const ending = one.endings.close().then(left)
  t.equal(await Promise.race([ending, settled().then(() => 'waits')]), 'waits')
  one.stop()
  written.resolve()
  t.equal(await Promise.race([ending, settled().then(() => 'waits')]), 'waits', 'the store is away')
  one.lossy.isAway = false
  retries.run()
  t.equal(await ending, undefined)
})

await test('an end that its instance is done with is nobody else’s, nor one that another has taken over', async (t) => {
  const { recorded, revoked, instance, claims } = await endedWorld(t)
  const revocation = Promise.withResolvers<void>()
  const one = instance('one', revocation.promise)
  const second = instance('second')
  await one.logout()
  await second.logout()
  revocation.resolve()
  await settled()
  claims.run()
  await settled()
  t.same([recorded, revoked], [['one logout'], ['one']])

  const again = await endedWorld(t)
  const first = again.instance('one', never)
  await first.logout()
  const [slow, quick] = [again.instance('slow', never), again.instance('quick', never)]
  for (const each of [slow, quick]) await each.logout()
  again.claims.run()
  await settled()
  t.equal(again.revoked.length, 2, 'of two that repeat the logout, one takes it over')
})

await test('without a revocation nothing is left once the end is recorded, and no command says so twice', async (t) => {
  const { store, recorded, left } = await endedWorld(t)
  const commands: string[] = []
  const counted = new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target)
      if (typeof member !== 'function') return member
      return (...args: unknown[]) => {
        commands.push(String(name))
        return (member as (...args: unknown[]) => unknown).apply(target, args)
      }
    },
  })
  const endings = new Endings(counted, () => ({}))
  endings.onRecord(({ reason }) => recorded.push(reason))
  endings.onRevoke(() => undefined)
  commands.length = 0
  await endings.end(KEY, 'logout', { id: 'id' }, true)
  await settled()
  t.same(
    commands.filter((name) => name !== 'isReplicated'),
    ['bury', 'replace', 'removeIf'],
  )
  t.same(recorded, ['logout'])
  t.equal(await left(), undefined)
})

await test('an instance that hears of its claim so late that it was taken for stopped records nothing', async (t) => {
  const { recorded, revoked, instance, claims } = await endedWorld(t)
  const pass = clockAhead(t)
  const [one, other] = [instance('one'), instance('other')]
  const gate = Promise.withResolvers<void>()
  one.lossy.hold('replace', gate.promise)
  const late = one.logout()
  await settled()
  await other.logout()
  claims.run()
  await settled()
  pass(CLAIM_MS + 1)
  gate.resolve()
  t.match(await late, { existed: false })
  t.same([recorded, revoked], [['other logout'], ['other']])
})

await test('an instance that hears late, and whose claim still stands, records the end', async (t) => {
  const { recorded, revoked, instance, left } = await endedWorld(t)
  const pass = clockAhead(t)
  const one = instance('one')
  const gate = Promise.withResolvers<void>()
  one.lossy.hold('replace', gate.promise)
  const late = one.logout()
  await settled()
  pass(CLAIM_MS + 1)
  gate.resolve()
  t.match(await late, { existed: true })
  await settled()
  t.same([recorded, revoked], [['one logout'], ['one']])
  t.equal(await left(), undefined)
})

await test('an end is taken over once its instance could say for long enough that it is done, and not while the store is away', async (t) => {
  const { recorded, revoked, instance, claims } = await endedWorld(t)
  const [one, other] = [instance('one', never), instance('other')]
  await one.logout()
  await other.logout()
  other.lossy.availableForMs = CLAIM_MS - 1
  claims.run()
  await settled()
  t.same([recorded, revoked], [['one logout'], ['one']], 'the store was away a moment ago')
  other.lossy.availableForMs = CLAIM_MS
  claims.run()
  await settled()
  t.same([recorded, revoked], [['one logout'], ['one', 'other']])
})

await test('what an instance of version 0.3 records is its own', async (t) => {
  const { store, recorded, revoked, instance, claims } = await endedWorld(t)
  await store.remove(KEY)
  await store.create(LEFT, 'a-name', Date.now() + HOUR_MS)
  t.same(await instance('one').logout(), { existed: false })
  t.equal(claims.size, 0)
  t.same([recorded, revoked], [[], []])
})

await test('whoever has taken over an end may stop, too', async (t) => {
  const { recorded, revoked, instance, claims, left } = await endedWorld(t)
  const [one, second, third] = [instance('one', never), instance('second', never), instance('third')]
  await one.logout()
  await settled()
  for (const each of [second, third]) {
    await each.logout()
    claims.run()
    await settled()
  }
  t.same([recorded, revoked], [['one logout'], ['one', 'second', 'third']])
  t.equal(await left(), undefined)
  const again = await endedWorld(t)
  const first = again.instance('first', never)
  await first.logout()
  const patient = again.instance('patient')
  patient.lossy.lose('readUntracked', 'unsent', Infinity)
  await patient.logout()
  again.claims.run()
  await settled()
  await patient.logout()
  t.equal(again.claims.size, 1, 'an attempt that failed is no reason not to look again')
})
