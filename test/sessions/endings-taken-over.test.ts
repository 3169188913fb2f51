import { setImmediate } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { Endings, type Ending } from '../../src/sessions/endings.ts'
import { besideKey, LEFT_MS, sessionKey } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { lossyStore } from '../support/sessions/lossy-store.ts'
import { sessionRecord } from '../support/sessions/session-instance.ts'
import { clockAhead, timeAhead } from '../support/time/clock-ahead.ts'
import { HeldTimers } from '../support/time/held-timers.ts'

const HOUR_MS = 3_600_000
const CLAIM_MS = 6_000
const KEY = sessionKey('id')
const LEFT = besideKey(KEY, 'left')
const never = new Promise<void>(() => undefined)

/** Instances on one store, and all that they record and revoke. */
async function world(t: Test) {
  const store = new MemoryStore()
  const [recorded, revoked]: [string[], string[]] = [[], []]
  const instance = (at: string, revocation: Promise<void> | undefined = Promise.resolve()) => {
    const lossy = lossyStore(store)
    const record = sessionRecord()
    const endings = new Endings(lossy.store, () => ({ record }))
    endings.onRecord(({ reason }: Ending) => recorded.push(`${at} ${reason}`))
    endings.onRevoke(() => {
      revoked.push(at)
      return revocation
    })
    const logout = async () => endings.end(KEY, 'logout', { id: 'id' }, true)
    return { lossy, endings, logout, stop: () => (lossy.isAway = true) }
  }
  const left = async () => (await store.readUntracked(LEFT))?.value
  await store.create(KEY, 'v1.sealed', Date.now() + HOUR_MS)
  return { store, recorded, revoked, instance, left, claims: new HeldTimers(t, 'setTimeout', CLAIM_MS) }
}

/** All that is due has happened. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await setImmediate()
}

await test('an instance that stopped before it revoked is followed by whoever repeats the logout, and the end has one line', async (t) => {
  const { recorded, revoked, instance, left, claims } = await world(t)
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
  const { recorded, revoked, instance, left, claims } = await world(t)
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

await test('an end that its instance is done with is nobody else’s, nor one that another has taken over', async (t) => {
  const { recorded, revoked, instance, claims } = await world(t)
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

  const again = await world(t)
  const first = again.instance('one', never)
  await first.logout()
  const [slow, quick] = [again.instance('slow', never), again.instance('quick', never)]
  for (const each of [slow, quick]) await each.logout()
  again.claims.run()
  await settled()
  t.equal(again.revoked.length, 2, 'of two that repeat the logout, one takes it over')
})

await test('without a revocation nothing is left once the end is recorded, and no command says so twice', async (t) => {
  const { store, recorded, left } = await world(t)
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
  const { recorded, revoked, instance, claims } = await world(t)
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
  const { recorded, revoked, instance, left } = await world(t)
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

for (const lost of ['replace', 'removeIf'] as const) {
  for (const loss of ['unheard', 'unsent'] as const) {
    await test(`when ${lost} of a revoked end is ${loss}, the end is recorded and revoked once, and nothing stays`, async (t) => {
      const retries = new HeldTimers(t, 'setTimeout', 250)
      const { recorded, revoked, instance, left } = await world(t)
      const revocation = Promise.withResolvers<void>()
      const one = instance('one', revocation.promise)
      const gate = Promise.withResolvers<void>()
      one.lossy.hold('replace', gate.promise)
      const logout = one.logout()
      await settled()
      one.lossy.lose(lost, loss)
      gate.resolve()
      await logout
      revocation.resolve()
      await settled()
      retries.run()
      await settled()
      t.same([recorded, revoked], [['one logout'], ['one']])
      t.equal(await left(), undefined)
    })
  }
}

await test('what an instance of version 0.3 records is its own', async (t) => {
  const { store, recorded, revoked, instance, claims } = await world(t)
  await store.remove(KEY)
  await store.create(LEFT, 'a-name', Date.now() + HOUR_MS)
  t.same(await instance('one').logout(), { existed: false })
  t.equal(claims.size, 0)
  t.same([recorded, revoked], [[], []])
})

await test('whoever has taken over an end may stop, too', async (t) => {
  const { recorded, revoked, instance, claims, left } = await world(t)
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
  const again = await world(t)
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

await test('a record that is tried in vain when the store is back is tried again', async (t) => {
  const retries = new HeldTimers(t, 'setTimeout', 250)
  const { recorded, instance, claims } = await world(t)
  const one = instance('one', never)
  one.lossy.lose('bury', 'unheard')
  await one.logout().catch(() => undefined)
  one.lossy.lose('replace', 'unsent')
  for (let tries = 0; tries < 2; tries++) {
    retries.run()
    await settled()
  }
  t.same(recorded, ['one logout'])
  const other = instance('other')
  await other.logout()
  other.lossy.lose('replace', 'unsent')
  claims.run()
  await settled()
  t.same(recorded, ['one logout'])
  retries.run()
  await settled()
  t.same(recorded, ['one logout'])
})

await test('an end that is taken over while the store is away is taken over when it is back', async (t) => {
  const retries = new HeldTimers(t, 'setTimeout', 250)
  const { revoked, instance, claims, left } = await world(t)
  const [one, other] = [instance('one', never), instance('other')]
  await one.logout()
  await settled()
  await other.logout()
  other.stop()
  claims.run()
  await settled()
  t.same(revoked, ['one'])
  other.lossy.isAway = false
  retries.run()
  await settled()
  t.same(revoked, ['one', 'other'])
  t.equal(await left(), undefined)
})

await test('an end whose store stays away is recorded and revoked by the instance that made it', async (t) => {
  const retries = new HeldTimers(t, 'setTimeout', 250)
  const set = timeAhead(t)
  const { recorded, revoked, instance } = await world(t)
  const one = instance('one')
  one.lossy.lose('replace', 'unsent', Infinity)
  await one.logout()
  set(LEFT_MS + 1)
  retries.run()
  await settled()
  t.same([recorded, revoked], [['one logout'], ['one']])
})
