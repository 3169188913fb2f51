import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'tap'
import { nameOf, type LoginIdentity } from '../../src/oauth/login-identity.ts'
import type { LogoutToken } from '../../src/oauth/logout-tokens.ts'
import { ProviderLogouts } from '../../src/sessions/provider-logouts.ts'
import type { IndexedSession, SubjectIndex } from '../../src/sessions/subject-index.ts'
import { REQUESTER } from '../support/sessions/subject-instance.ts'

const IDENTITY: LoginIdentity = { iss: 'https://issuer.test', sub: 'ada', sid: 's1', issuedAt: 100 }
const { sid: _sid, ...SIDLESS } = IDENTITY
const NAME = nameOf(IDENTITY.iss, 's1')
const PLACE = { index: 'index', id: 'place' }
const SESSION = { key: 'key' } as IndexedSession
const NEVER = { isListed: true, endedAgoMs: undefined, endedUntil: { issued: -Infinity, sidless: -Infinity } }
const BY = { reason: 'revoked', requester: REQUESTER }

const age = (): number => 1000

/** The logouts of a provider, and all that they ask of both indexes. */
function logouts({ endsWithoutSid = false } = {}) {
  const calls: unknown[][] = []
  const world = { before: async (_what: string): Promise<void> => undefined, look: NEVER as object }
  const indexOf = (name: string, ended: number): SubjectIndex => {
    const ask = async (what: string, ...args: unknown[]): Promise<number> => {
      calls.push([name, what, ...args])
      await world.before(what)
      return ended
    }
    return {
      newPlace: (of: string) => ({ index: `${name} ${of}`, id: 'new' }),
      add: (...args: unknown[]) => ask('add', ...args),
      look: async (place: unknown) => (calls.push([name, 'look', place]), world.look),
      endAll: (...args: unknown[]) => ask('end all', ...args),
      endIssued: (...args: unknown[]) => ask('end issued', ...args),
    } as unknown as SubjectIndex
  }
  const parts = { bySubject: indexOf('subjects', 3), bySid: indexOf('sids', 4), endsWithoutSid }
  return { logouts: new ProviderLogouts(parts), calls, world }
}

await test('a session that knows its session at the provider is entered under that, and another one nowhere', async (t) => {
  const { logouts: provider, calls, world } = logouts()
  t.strictSame(provider.newPlace(IDENTITY), { index: `sids ${NAME}`, id: 'new' })
  t.equal(provider.newPlace(SIDLESS), undefined)
  await provider.enlist(SIDLESS, undefined, SESSION, 9000)
  await provider.enlist(SIDLESS, PLACE, SESSION, 9000)
  await provider.enlist(IDENTITY, undefined, SESSION, 9000)
  t.strictSame(calls, [])
  const gate = Promise.withResolvers<void>()
  world.before = () => gate.promise
  let isOver = false
  const done = provider.enlist(IDENTITY, PLACE, SESSION, 9000).finally(() => (isOver = true))
  await turn()
  t.strictSame([isOver, calls], [false, [['sids', 'add', NAME, PLACE, SESSION, 9000]]])
  gate.resolve()
  await done
})

await test('a login lives unless it is as old as a logout of its user, or its session at the provider has ended since it began', async (t) => {
  const { logouts: provider, calls, world } = logouts()
  const ended = { ...NEVER, endedUntil: { issued: 100, sidless: 200 } }
  for (const [issuedAt, expected] of [
    [100, false],
    [101, false],
    [200, false],
    [201, true],
  ] as const) {
    t.equal(await provider.mayLive(issuedAt, undefined, ended, age), expected, `${issuedAt} without a sid`)
  }
  t.strictSame(calls, [])
  t.equal(await provider.mayLive(100, PLACE, ended, age), false)
  t.strictSame(calls, [], 'what is known needs no look')
  t.equal(await provider.mayLive(101, PLACE, ended, age), true, 'the other mark is for sessions without a sid')
  t.strictSame(calls, [['sids', 'look', PLACE]])
  for (const [isListed, endedAgoMs, expected] of [
    [false, undefined, false],
    [false, 1001, false],
    [true, 0, false],
    [true, 1000, false],
    [true, 1001, true],
  ] as const) {
    world.look = { ...NEVER, isListed, endedAgoMs }
    t.equal(await provider.mayLive(101, PLACE, ended, age), expected, `${isListed} ${endedAgoMs}`)
  }
})

await test('a logout ends what it names: one session at the provider, or all of a user that are older', async (t) => {
  const { logouts: provider, calls } = logouts()
  const token: LogoutToken = { subject: 'ada', issuedAt: 50 }
  t.equal(await provider.end(token, REQUESTER), 3)
  const bySubject = (mark: string) => ['subjects', 'end issued', 'ada', mark, 50, { ...BY, subject: 'ada' }]
  t.strictSame(calls.splice(0), [bySubject('issued')])
  const bySid = ['sids', 'end all', NAME, BY]
  for (const whose of [{ subject: 'ada' }, {}]) {
    t.equal(await provider.end({ issuedAt: 50, sid: NAME, ...whose }, REQUESTER), 4)
    t.strictSame(calls.splice(0), [bySid])
  }
  const wide = logouts({ endsWithoutSid: true })
  t.equal(await wide.logouts.end({ ...token, sid: NAME }, REQUESTER), 7)
  t.strictSame(wide.calls.splice(0), [bySid, bySubject('sidless')], 'and those of which only the user is known')
  t.equal(await wide.logouts.end({ issuedAt: 50, sid: NAME }, REQUESTER), 4)
  t.strictSame(wide.calls, [bySid])
})

await test('a logout that has not reached one index is told so, though the other was reached', async (t) => {
  const { logouts: provider, world } = logouts({ endsWithoutSid: true })
  for (const failing of ['end all', 'end issued']) {
    world.before = async (what) => {
      if (what === failing) throw new Error('planted')
    }
    const token: LogoutToken = { subject: 'ada', sid: NAME, issuedAt: 50 }
    await t.rejects(provider.end(token, REQUESTER), /planted/)
  }
})
