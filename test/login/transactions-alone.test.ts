import { test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { browserLogins, sessionsOf } from '../../src/login/browser-logins.ts'
import { finishedValue, LoginCookies } from '../../src/login/login-cookies.ts'
import { recordKiB, type LoginOutcome } from '../../src/login/login-record.ts'
import type { LoginTicket } from '../../src/login/login-transactions.ts'
import { Envelope } from '../../src/sessions/envelope.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { alone, begun, START, TTL_MS } from '../support/login/logins-alone.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'

/** A login that has ended, and how. */
const FAILED: LoginOutcome = { is: 'failed', error: 'access_denied', flow: 'signup', returnTo: '/chart' }
const finished = (session: string): LoginOutcome => ({
  is: 'finished',
  flow: 'signup',
  returnTo: '/chart',
  session,
  cookieValue: `cookie of ${session}`,
  endsAt: Date.now() + 3_600_000,
  cookieEndsAt: Date.now() + 3_600_000,
})

const pair = (name: string, value: string) => `${name}=${value}`

await test('a callback gets what its login was started with, once, within LOGIN_TTL_SECONDS', async (t) => {
  const browser = alone()
  const { logins, store, header } = browser
  const from = Date.now()
  const ticket = await browser.start({ sessionKey: 'current', hasNonce: true })
  const { state } = ticket.cookie
  const expiresAt = (await store.read(ticket.key))?.expiresAt ?? 0
  t.ok(expiresAt >= from + TTL_MS && expiresAt <= Date.now() + TTL_MS)
  t.match(ticket.transaction, { flow: 'signup', returnTo: '/chart', attributed: true, previous: ['current'] })
  t.match(ticket.transaction, { verifier: /^[\w-]{43}$/, nonce: /^[\w-]{43}$/ })
  t.not(ticket.transaction.verifier, ticket.transaction.nonce)
  t.equal(logins.knows(header(), state), true)
  t.equal(logins.knows(header(), 'another'), false)
  t.equal(logins.knows(undefined, state), false)
  t.same(await logins.consume(header(), 'another'), { is: 'unknown' })
  const running = await begun(t, browser, state)
  t.same(running.transaction, ticket.transaction)
  t.ok(((await store.read(ticket.key))?.expiresAt ?? 0) >= expiresAt, 'it may finish after its expiry')
  const other = await browser.start()
  t.equal('nonce' in other.transaction, false)
  await logins.forget([other.key])
  t.same(await logins.consume(header(), other.cookie.state), { is: 'unknown' })
})

await test('a repeated callback gets the outcome of the first, and waits for it', async (t) => {
  const browser = alone()
  const { logins, header, store } = browser
  const { cookie, key } = await browser.start()
  const ticket = await begun(t, browser, cookie.state)
  const waiting = logins.consume(header(), cookie.state)
  const outcome = finished('a session')
  await logins.settle(ticket, outcome)
  t.match(await waiting, { is: 'replayed', outcome, waited: true, cookie: { name: cookie.name } })
  t.match(await logins.consume(header(), cookie.state), { is: 'replayed', outcome, waited: false })
  t.equal((await store.read(key))?.expiresAt, outcome.is === 'finished' && outcome.endsAt)
  t.same(await logins.settled(header()), [
    { key, cookieName: cookie.name, session: 'a session', cookieValue: 'cookie of a session' },
  ])
  const from = Date.now()
  await logins.settle(ticket, FAILED)
  t.match(await logins.consume(header(), cookie.state), { is: 'replayed', outcome: FAILED })
  t.ok(((await store.read(key))?.expiresAt ?? 0) - from <= TTL_MS + 1000)
  t.same(await logins.settled(header()), [{ cookieName: cookie.name }])
})

await test('a login that is not asked for costs no read', async (t) => {
  const { logins, start, header, store } = alone()
  const { cookie } = await start()
  const reads = t.capture(store, 'readMany', (keys: readonly string[]) =>
    MemoryStore.prototype.readMany.call(store, keys),
  )
  t.same(await logins.otherSessions(header(), cookie.state), new Map())
  t.same(reads(), [])
  const other = await start({ sessionKey: 'noted' })
  t.same(await logins.otherSessions(header(), cookie.state), new Map([['noted', undefined]]))
  t.same(await logins.otherSessions(header(), other.cookie.state), new Map())
})

await test('an outcome that somebody else has changed meanwhile is left as it is', async (t) => {
  const browser = alone()
  const { cookie } = await browser.start()
  const ticket = await begun(t, browser, cookie.state)
  const stale = { ...ticket }
  await browser.logins.settle(ticket, finished('one'))
  await browser.logins.settle(stale, finished('other'))
  t.equal(ticket.sealed.length, 1, 'nothing else can be there')
  t.match(await browser.logins.consume(browser.header(), cookie.state), { outcome: { session: 'one' } })
})

await test('a login whose process has died is abandoned, and says where it was to return to', async (t) => {
  const set = timeAhead(t)
  const browser = alone()
  const { cookie } = await browser.start()
  await begun(t, browser, cookie.state)
  set(40_000)
  t.same(await browser.logins.consume(browser.header(), cookie.state), {
    is: 'abandoned',
    flow: 'signup',
    returnTo: '/chart',
  })
})

await test('of two callbacks at the same moment one completes the login', async (t) => {
  const browser = alone()
  const { cookie } = await browser.start()
  const both = [1, 2].map(() => browser.logins.consume(browser.header(), cookie.state))
  const first = await Promise.race(both)
  if (first.is !== 'fresh') throw new Error(first.is)
  await browser.logins.settle(first.ticket, FAILED)
  t.same((await Promise.all(both)).map(({ is }) => is).toSorted(), ['fresh', 'replayed'])
})

await test('a browser keeps ten login cookies: those of ended logins go first, then the oldest', async (t) => {
  const browser = alone()
  const tickets: LoginTicket[] = []
  for (let count = 0; count < 9; count++) tickets.push(await browser.start())
  const stale = async () => (await browser.logins.start(browser.header(), START)).stale
  t.same(await stale(), [])
  tickets.push(await browser.start())
  t.same(await stale(), [tickets[0]?.cookie.name])
  await browser.logins.settle(await begun(t, browser, tickets[4]?.cookie.state ?? ''), FAILED)
  t.same(await stale(), [tickets[4]?.cookie.name])
  await begun(t, browser, tickets[0]?.cookie.state ?? '')
  await browser.logins.forget([tickets[6]?.key ?? ''])
  tickets.push(await browser.start())
  t.same(await stale(), [tickets[4]?.cookie.name, tickets[6]?.cookie.name], 'one in progress stays')
})

await test('logins are looked up ten at a time, the newest first, until none of ten has finished', async (t) => {
  const browser = alone()
  for (let count = 0; count < 25; count++) await browser.start()
  const cookies = browser.cookies.read(browser.header())
  let lookUps = 0
  const readMany = browser.store.readMany.bind(browser.store)
  browser.store.readMany = (keys) => {
    lookUps++
    return readMany(keys)
  }
  const states = async () =>
    (await browserLogins(cookies, browser.store, browser.envelope)).map(({ loginState }) => loginState.is)
  t.same(await states(), [...Array<string>(15).fill('unasked'), ...Array<string>(10).fill('pending')])
  t.equal(lookUps, 1)
  await browser.logins.settle(await begun(t, browser, cookies[20]?.state ?? ''), finished('s'))
  lookUps = 0
  const found = await states()
  t.same(found.slice(0, 5), Array<string>(5).fill('unasked'))
  t.equal(found[20], 'finished')
  t.equal(lookUps, 2)
  const [oldest, ...rest] = cookies
  if (oldest === undefined) throw new Error('none')
  await browser.logins.settle(await begun(t, browser, oldest.state), finished('of the oldest'))
  const marked = [{ ...oldest, value: finishedValue(oldest.value) }, ...rest]
  const first = await browserLogins(marked, browser.store, browser.envelope)
  t.equal(sessionsOf(first).size, 2, 'one whose cookie says that it has finished is looked up first')
  const other = new Envelope(new Changeable(['another secret']))
  const unreadable = await browserLogins(cookies.slice(0, 1), browser.store, other)
  t.same(unreadable[0]?.loginState, { is: 'unreadable' })
})

await test('a login that cannot be looked up counts as not looked up where the store serves, and fails the start of another where not', async (t) => {
  const { store, start } = alone()
  await start()
  store.readMany = async () => {
    throw new StoreUnavailable(new Error('no reply'))
  }
  await t.resolves(start(), 'a master of a Cluster is gone')
  Object.assign(store, { unavailableSince: () => 1 })
  await t.rejects(start(), StoreUnavailable)
})

await test('only cookies that this server has made are read, thirty at most, the oldest first', async (t) => {
  const set = timeAhead(t)
  const { cookies } = alone(['new', 'old'])
  const older = new LoginCookies({ prefix: '__Host-', secure: true }, new Changeable(['old']))
  const late = older.create()
  set(-5000)
  const early = cookies.create()
  const [secret = '', start = '', mac = ''] = early.value.split('.')
  const header = [
    pair(late.name, late.value),
    pair(early.name, early.value),
    pair(early.name, `${secret}.${start}.${mac.slice(1)}`),
    pair(early.name, `${secret}.${start}1.${mac}`),
    pair(early.name, `${secret.slice(1)}.${start}.${mac}`),
    pair(`${early.name}x`, early.value),
    pair('__Host-login-', early.value),
    pair('another', early.value),
  ].join('; ')
  t.same(
    cookies.read(header).map(({ value }) => value),
    [early.value, late.value],
  )
  t.same(older.read(header), [late], 'a secret that this one lacks')
  t.same(cookies.read(), [])
  const many = Array.from({ length: 40 }, () => cookies.create())
  const read = cookies.read(many.map(({ name, value }) => pair(name, value)).join('; '))
  t.same(new Set(read.map(({ value }) => value)), new Set(many.slice(10).map(({ value }) => value)))
  t.match(cookies.attributes(5000), { maxAge: 5, sameSite: 'lax', secure: true, httpOnly: true, path: '/' })
})

await test('the record of a login is as large as its return path', (t) => {
  t.equal(recordKiB('/'), 1)
  t.equal(recordKiB(`/${'x'.repeat(381)}`), 1)
  t.equal(recordKiB(`/${'x'.repeat(382)}`), 2)
  t.end()
})
