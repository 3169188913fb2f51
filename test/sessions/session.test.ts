import { test } from 'tap'
import {
  expiryOf,
  isLive,
  isSubject,
  isTokenAccepted,
  pageTag,
  parseRecord,
  recordOf,
  refusalSource,
  sessionState,
  sharerOf,
  type Session,
  type SessionRecord,
} from '../../src/sessions/session.ts'
import { sessionRecord } from '../support/sessions/session-instance.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'

const HOUR_MS = 3_600_000
const sessionOf = (record: Partial<SessionRecord> = {}, idleEndsAt = Date.now() + HOUR_MS): Session => ({
  id: 'id',
  key: 'key',
  tag: 'tag',
  sealed: 'sealed',
  idleEndsAt,
  record: sessionRecord(record),
})

await test('which responses of upstream say that it has accepted a token', (t) => {
  const accepted = Array.from({ length: 500 }, (_, at) => at + 100).filter(isTokenAccepted)
  const between = (from: number, to: number) => accepted.filter((status) => status >= from && status < to)
  t.equal(between(200, 300).length, 100)
  t.same(between(100, 200), [])
  t.same(between(300, 400), [304])
  t.equal(between(400, 500).length, 98)
  for (const status of [401, 429]) t.notOk(accepted.includes(status))
  t.same(between(500, 600), [])
  t.end()
})

await test('a subject has 1 to 256 characters of any kind', (t) => {
  for (const text of ['a', 'x'.repeat(256), '𝒳'.repeat(256), ' ', 'é']) t.ok(isSubject(text), text)
  for (const text of ['', 'x'.repeat(257), '𝒳'.repeat(257), `${'x'.repeat(256)}𝒳`, '\ud800', 'a\udc00']) {
    t.notOk(isSubject(text), JSON.stringify(text))
  }
  t.end()
})

await test('a record is read if it has all that every version writes', (t) => {
  const record = sessionRecord()
  t.same(parseRecord(JSON.stringify(record)), record)
  for (const text of ['', 'null', '7', '{}', '{', JSON.stringify({ ...record, endsAt: 'soon' })]) {
    t.equal(parseRecord(text), undefined, text)
  }
  for (const name of ['accessToken', 'tokenExpiresAt', 'tokenLifetimeMs', 'scope', 'endsAt', 'loginKey'] as const) {
    t.equal(parseRecord(JSON.stringify({ ...record, [name]: undefined })), undefined, name)
  }
  t.end()
})

await test('a grant makes a record, which ends with its token if nothing can renew that', (t) => {
  const expiresAt = Date.now() + 60_000
  const session = { endsAt: Date.now() + HOUR_MS, loginKey: 'login', scope: 'trade' }
  const oidc = { idToken: 'token' } as unknown as NonNullable<SessionRecord['oidc']>
  const grant = { accessToken: 'access', expiresAt, refreshToken: 'refresh', lifetimeGuessed: false }
  const made = recordOf(grant, { ...session, subject: 'CR1', oidc })
  t.match(made, {
    ...session,
    accessToken: 'access',
    tokenExpiresAt: expiresAt,
    refreshToken: 'refresh',
    subject: 'CR1',
  })
  t.equal(made.oidc, oidc)
  t.ok(made.tokenLifetimeMs > 59_000 && made.tokenLifetimeMs <= 60_000)
  const bare = recordOf({ accessToken: 'access', expiresAt, scope: 'read', lifetimeGuessed: false }, session)
  t.same(Object.keys(bare).toSorted(), [
    'accessToken',
    'endsAt',
    'loginKey',
    'scope',
    'tokenExpiresAt',
    'tokenLifetimeMs',
  ])
  t.same([bare.endsAt, bare.scope], [expiresAt, 'read'])
  const long = { accessToken: 'access', expiresAt: session.endsAt + 1, lifetimeGuessed: false }
  t.equal(recordOf(long, session).endsAt, session.endsAt)
  t.end()
})

await test('a session is live within both of its limits, and has passed the one that came first', (t) => {
  const set = timeAhead(t)
  const now = Date.now()
  t.equal(isLive(sessionOf({ endsAt: now + 10 }, now + 10), now + 9), true)
  t.equal(isLive(sessionOf({ endsAt: now + 10 }, now + 20), now + 10), false)
  t.equal(isLive(sessionOf({ endsAt: now + 20 }, now + 10), now + 10), false)
  const session = sessionOf({ endsAt: now + 2 * HOUR_MS }, now + HOUR_MS)
  t.equal(expiryOf(session), undefined)
  set(HOUR_MS - 5000)
  t.equal(expiryOf(session), undefined)
  set(4900)
  t.equal(expiryOf(session), 'idle', 'a moment early: the clock of the store may be ahead')
  set(HOUR_MS)
  t.equal(expiryOf(session), 'expired')
  t.end()
})

await test('limits are shared by the sessions of a subject, or else count for one', (t) => {
  t.equal(sharerOf(sessionOf({ subject: 'CR1' })), 'subject:CR1')
  t.equal(sharerOf(sessionOf()), 'key')
  t.equal(refusalSource(sessionOf({ subject: 'CR1' }), '192.0.2.1'), 'subject:CR1')
  t.equal(refusalSource(sessionOf(), '192.0.2.1'), 'address:192.0.2.1')
  const sites = ['2001:db8:1:1::1', '2001:db8:1:2::1', '2001:db8:2:1::1'].map((each) =>
    refusalSource(sessionOf(), each),
  )
  t.equal(sites[0], sites[1], 'a site is one user')
  t.not(sites[0], sites[2])
  t.end()
})

await test('a page knows the limits of its session in seconds, and the idle one a step early', (t) => {
  const now = Math.floor(Date.now() / 1000)
  const endsAt = (now + 7200) * 1000 + 500
  const none = sessionState(undefined, HOUR_MS, 60_000)
  t.same(Object.keys(none), ['authenticated', 'now'])
  t.ok(none.now - now <= 1)
  const idleEndsAt = (now + 3600) * 1000 + 500
  const state = sessionState(sessionOf({ endsAt, subject: 'CR1', scope: 'read' }, idleEndsAt), HOUR_MS, 60_000)
  t.match(state, { authenticated: true, session: pageTag('id'), expires_at: now + 7200, scope: 'read', subject: 'CR1' })
  t.equal('idle_expires_at' in state && state.idle_expires_at, now + 3540)
  t.notOk('claims' in state)
  const capped = sessionState(sessionOf({ endsAt }, endsAt), HOUR_MS, 60_000)
  const shown = 'idle_expires_at' in capped ? capped.idle_expires_at : 0
  t.ok(shown >= now + 3600 && shown <= now + 3601, 'never further ahead than the setting')
  t.notOk('subject' in capped)
  const short = sessionState(sessionOf({ endsAt }, endsAt), 3 * HOUR_MS, 60_000)
  t.equal('idle_expires_at' in short && short.idle_expires_at, now + 7200, 'nor than the session')
  const oidc = { claims: { name: 'Ada' } } as unknown as NonNullable<SessionRecord['oidc']>
  t.match(sessionState(sessionOf({ oidc }), HOUR_MS, 60_000), { claims: { name: 'Ada' } })
  t.end()
})
