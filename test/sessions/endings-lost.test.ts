import { test } from 'tap'
import { LEFT_MS, sessionKey } from '../../src/store/keys.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { endedWorld, never, settled } from '../support/sessions/ended-world.ts'

for (const lost of ['replace', 'removeIf'] as const) {
  for (const loss of ['unheard', 'unsent'] as const) {
    await test(`when ${lost} of a revoked end is ${loss}, the end is recorded and revoked once, and nothing stays`, async (t) => {
      const retries = new HeldTimers(t, 'setTimeout', 250)
      const { recorded, revoked, instance, left } = await endedWorld(t)
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

await test('an end that was not even sent is not looked for later', async (t) => {
  const retries = new HeldTimers(t, 'setTimeout', 250)
  const { instance } = await endedWorld(t)
  const one = instance('one')
  one.lossy.lose('bury', 'unsent')
  await t.rejects(one.logout())
  t.equal(retries.size, 0)
})

await test('an instance that ends looks before for an end whose reply was lost, and does all that follows', async (t) => {
  const { recorded, revoked, instance, left } = await endedWorld(t)
  const one = instance('one')
  one.lossy.lose('bury', 'unheard')
  await t.rejects(one.logout())
  await one.endings.close()
  t.same([recorded, revoked], [['one logout'], ['one']])
  t.equal(await left(), undefined)
})

await test('a record, or a take-over, that is tried in vain when the store is back is tried again', async (t) => {
  const retries = new HeldTimers(t, 'setTimeout', 250)
  const { recorded, revoked, instance, claims, left } = await endedWorld(t)
  const one = instance('one', never)
  one.lossy.lose('bury', 'unheard')
  await one.logout().catch(() => undefined)
  one.lossy.lose('replace', 'unsent')
  retries.run()
  await settled()
  t.same([recorded, revoked], [[], []])
  retries.run()
  await settled()
  t.same([recorded, revoked], [['one logout'], ['one']])
  const other = instance('other')
  await other.logout()
  other.lossy.lose('replace', 'unsent')
  claims.run()
  await settled()
  t.same(revoked, ['one'])
  retries.run()
  await settled()
  t.same([recorded, revoked], [['one logout'], ['one', 'other']])
  t.equal(await left(), undefined)
})

await test('an instance that heard neither of the end nor of its claim records it as soon as the store is back', async (t) => {
  const retries = new HeldTimers(t, 'setTimeout', 250)
  const { recorded, revoked, instance, claims, left } = await endedWorld(t)
  const one = instance('one')
  one.lossy.lose('bury', 'unheard')
  one.lossy.lose('replace', 'unheard')
  await one.logout().catch(() => undefined)
  for (let tries = 0; tries < 2; tries++) {
    retries.run()
    await settled()
  }
  t.same([recorded, revoked], [['one logout'], ['one']])
  t.equal(claims.size, 0)
  t.equal(await left(), undefined)
})

await test('an end that is taken over while the store is away is taken over when it is back', async (t) => {
  const retries = new HeldTimers(t, 'setTimeout', 250)
  const { revoked, instance, claims, left } = await endedWorld(t)
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
  const { recorded, revoked, instance } = await endedWorld(t)
  const one = instance('one')
  one.lossy.lose('replace', 'unsent', Infinity)
  await one.logout()
  set(LEFT_MS + 1)
  retries.run()
  await settled()
  t.same([recorded, revoked], [['one logout'], ['one']])
})

await test('a browser that repeats its logout while the store is away takes nobody else the record of an end', async (t) => {
  const retries = new HeldTimers(t, 'setTimeout', 250)
  const { recorded, instance } = await endedWorld(t)
  const one = instance('one')
  one.stop()
  for (let times = 0; times < 10_000; times++) {
    await one.endings.end(sessionKey('other'), 'logout', {}, true).catch(() => undefined)
  }
  one.lossy.isAway = false
  one.lossy.lose('bury', 'unheard')
  await one.logout().catch(() => undefined)
  retries.run()
  await settled()
  t.same(recorded, ['one logout'])
})
