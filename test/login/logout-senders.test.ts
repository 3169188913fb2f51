import { setImmediate as turn } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { LogoutSenders } from '../../src/login/logout-senders.ts'
import type { SignatureCheck } from '../../src/oauth/provider-keys.ts'
import { ManualTimers } from '../support/time/manual-timers.ts'
import { replace } from '../support/time/replace.ts'

const NOW = 1_700_000_000_000
const KNOWN_MS = 7 * 86_400_000
const HOUR_MS = 3_600_000
const [VALID, INVALID] = [{ is: 'valid' } as const, { is: 'invalid', cause: 'false' } as const]
const PROVIDER = '192.0.2.7'

/** The senders of an instance, on clocks that a test moves and an index that it plays. */
function sendersOf(t: Test, from: readonly string[] = []) {
  const world = { now: 1000, timeOfDay: NOW, entries: [] as { id: string; expiresAt: number }[], isAway: false }
  const calls: unknown[][] = []
  replace(t, performance, 'now', () => world.now)
  replace(t, Date, 'now', () => world.timeOfDay)
  const timers = new ManualTimers(t)
  const index = {
    async add(...args: unknown[]) {
      calls.push(['add', ...args])
      if (world.isAway) throw new Error('away')
    },
    async list(...args: unknown[]) {
      calls.push(['list', ...args])
      if (world.isAway) throw new Error('away')
      return world.entries
    },
  }
  const senders = new LogoutSenders(index as never, from)
  const check = (address: string, signature: SignatureCheck = INVALID) => senders.check(address, async () => signature)
  return {
    senders,
    world,
    timers,
    check,
    logged: () => calls.splice(0),
    /** The store is read, since the time for that has come. */
    read: async (): Promise<void> => {
      timers.run()
      await turn()
    },
    /** How many false tokens of an address are checked in a second, until one is not. */
    checked: async (address: string, most = 300): Promise<number> => {
      for (let count = 0; count < most; count++) if ((await check(address)) === undefined) return count
      return most
    },
  }
}

await test('ten false tokens of an address are looked at in a second, with those of its network', async (t) => {
  const { senders, world, checked, check } = sendersOf(t)
  t.equal(senders.isOver('192.0.2.1'), false)
  for (let count = 0; count < 9; count++) senders.countFalse('192.0.2.1')
  t.equal(senders.isOver('192.0.2.1'), false)
  t.same(await check('192.0.2.1', VALID), VALID)
  t.same(await check('192.0.2.1'), INVALID)
  t.equal(senders.isOver('192.0.2.1'), true)
  t.equal(await check('192.0.2.1', VALID), undefined, 'not even a valid one')
  t.equal(senders.isOver('192.0.2.2'), false)
  t.equal(await checked('2001:db8::1'), 10)
  t.equal(senders.isOver('2001:db8::ffff'), true)
  world.now += 1000
  t.equal(senders.isOver('192.0.2.1'), false)
  t.equal(await checked('192.0.2.1'), 10)
})

await test('a token counts as false if its signature is wrong or its key is made up, and not if the keys are away', async (t) => {
  const { senders, check } = sendersOf(t)
  for (let count = 0; count < 20; count++) {
    await check('192.0.2.1', { is: 'away', cause: 'timeout' })
    await check('192.0.2.1', VALID)
  }
  t.equal(senders.isOver('192.0.2.1'), false)
  for (let count = 0; count < 1001; count++) await check('192.0.2.1', VALID)
  t.same(await check('192.0.2.1', VALID), VALID, 'no token that was checked waits any more')
  for (let count = 0; count < 10; count++) await check('192.0.2.1', { is: 'away', cause: 'none', isKeyUnknown: true })
  t.equal(senders.isOver('192.0.2.1'), true)
})

await test('addresses that are listed may send more false tokens, and no others', async (t) => {
  const from = [PROVIDER, '198.51.100.0/24', '2001:db8:1::7', '2001:db8:2::/48']
  const { checked } = sendersOf(t, from)
  for (const address of [PROVIDER, '198.51.100.255', '2001:db8:1::7', '2001:db8:2:3::4']) {
    t.equal(await checked(address), 200, address)
  }
  for (const address of ['192.0.2.8', '198.51.101.1', '2001:db8:1:1::7', '2001:db8:3::1', 'unknown', '']) {
    t.equal(await checked(address), 10, address)
  }
})

await test('an address that has sent a valid token is known for a week, and the store hears of it once an hour', async (t) => {
  const { senders, world, checked, logged } = sendersOf(t)
  await senders.noteValid('2001:db8::1')
  const [[method, key, entry, after]] = logged() as [[string, string, { id: string }, number]]
  t.same([method, after], ['add', 0])
  t.match(key, /./)
  t.match(entry, { id: /^[\w-]{16}$/, value: 'valid', expiresAt: NOW + KNOWN_MS })
  t.equal(await checked('2001:db8::2'), 200, 'another of its network')
  await senders.noteValid('2001:db8::2')
  world.timeOfDay += HOUR_MS - 1
  await senders.noteValid('2001:db8::1')
  t.same(logged(), [])
  world.timeOfDay += 1
  await senders.noteValid('2001:db8::1')
  t.match(logged(), [['add', key, { id: entry.id, expiresAt: NOW + HOUR_MS + KNOWN_MS }, 0]])
  await senders.noteValid(PROVIDER)
  t.not((logged() as [[string, string, { id: string }]])[0][2].id, entry.id)
  world.timeOfDay += KNOWN_MS - 1
  world.now += 1000
  t.equal(await checked(PROVIDER), 200)
  world.timeOfDay += 1
  world.now += 1000
  t.equal(await checked(PROVIDER), 10)
})

await test('what other instances have learned is read at once, and then each minute', async (t) => {
  const { senders, world, timers, checked, logged, read } = sendersOf(t)
  t.same(timers.delays, [0])
  await senders.noteValid(PROVIDER)
  const [[, key, entry]] = logged() as [[string, string, { id: string; expiresAt: number }]]
  await read()
  t.same(logged(), [['list', key]])
  t.equal(await checked(PROVIDER), 10, 'the store has forgotten it')
  world.entries = [entry]
  t.same(timers.delays, [60_000])
  await read()
  world.now += 1000
  t.equal(await checked(PROVIDER), 200)
  world.isAway = true
  await read()
  world.now += 1000
  t.equal(await checked(PROVIDER), 200, 'while the store is away it stays known')
  senders.close()
  t.same(timers.delays, [])
  await t.rejects(senders.noteValid('192.0.2.9'), { message: 'away' })
})

await test('tokens of an address are checked one after the other, those of others meanwhile, and 1000 may wait', async (t) => {
  const { senders } = sendersOf(t)
  const begun: string[] = []
  const held: ((signature: SignatureCheck) => void)[] = []
  const check = (address: string, name: string) =>
    senders.check(address, () => {
      begun.push(name)
      return new Promise((resolve) => held.push(resolve))
    })
  const all = Array.from({ length: 1000 }, (_value, each) => check('192.0.2.1', `own ${each}`))
  const other = check('192.0.2.2', 'another')
  t.equal(await check('192.0.2.1', 'one too many'), undefined)
  await turn()
  t.same(begun, ['own 0', 'another'])
  held[1]?.(VALID)
  t.same(await other, VALID)
  held[0]?.(VALID)
  t.same(await all[0], VALID)
  await turn()
  t.same(begun, ['own 0', 'another', 'own 1'])
  const next = check('192.0.2.1', 'in the place of the first')
  await turn()
  t.same(begun, ['own 0', 'another', 'own 1'], 'it comes after the others')
  for (let each = 2; each < 12; each++) {
    held[each]?.(INVALID)
    await turn()
  }
  t.equal(begun.length, 12, 'after ten false ones no other is looked at')
  t.same((await Promise.all([...all, next])).filter((each) => each === undefined).length, 990)
})

await test('5000 signatures of strangers are checked in vain in a second, and those of whom it knows beside these', async (t) => {
  const { check, world } = sendersOf(t, [PROVIDER])
  const strangers = async (from: number, count: number, signature: SignatureCheck) => {
    const all = Array.from({ length: count }, (_value, each) =>
      check(`10.0.${from + (each >> 8)}.${each & 255}`, signature),
    )
    return (await Promise.all(all)).filter((each) => each !== undefined).length
  }
  t.equal(await strangers(0, 3000, VALID), 3000)
  t.equal(await strangers(20, 4999, INVALID), 4999, 'valid ones do not count')
  t.same(await check(PROVIDER), INVALID)
  t.equal(await strangers(60, 3, INVALID), 0, 'that of whom it knows counts too')
  t.same(await check(PROVIDER), INVALID)
  world.now += 1000
  t.equal(await strangers(60, 3, INVALID), 3)
})

await test('a check that fails unexpectedly fails alone, and leaves its address as many places as before', async (t) => {
  const { senders, check } = sendersOf(t)
  const failing = () => senders.check(PROVIDER, () => Promise.reject(new TypeError('planted')))
  const [failed, next] = [failing(), check(PROVIDER, VALID)]
  await t.rejects(failed, /planted/)
  t.same(await next, VALID)
  for (let count = 0; count < 100; count++) await t.rejects(failing(), /planted/)
  t.same(await check(PROVIDER, VALID), VALID)
})
