import { test, type Test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { AttributionCookie } from '../../src/login/attribution-cookie.ts'
import { followStoreClock } from '../../src/time/store-time.ts'

const LINK = {
  sidc: '0f8fad5b-d9cb-469f-a165-70867728950e',
  utm_campaign: 'a+b & c=%',
  utm_medium: 'affiliate',
  utm_source: 'CU12345',
}
const TTL_MS = 60_000
/** The cookie of this link that version 1.0 has made. */
const BEFORE =
  'eyJzaWRjIjoiMGY4ZmFkNWItZDljYi00NjlmLWExNjUtNzA4Njc3Mjg5NTBlIiwidXRtX2NhbXBhaWduIjoiYStiICYgYz0lIiwidXRtX21lZGl1bSI6ImFmZmlsaWF0ZSIsInV0bV9zb3VyY2UiOiJDVTEyMzQ1IiwidW50aWwiOjE3MDAwMDAwNjAwMDB9.foFRYopwcTdj800sLQRwN1wcLfIdX2Zka3H/14R0k9A'

/** The cookie of a server, whose clock a test sets. */
function cookieOf(t: Test, ttlMs = TTL_MS, secret = 'the secret of a test, of thirty-two bytes', secure = true) {
  const world = { now: 1_700_000_000_000 }
  t.teardown(followStoreClock(() => world.now))
  const secrets = new Changeable([secret])
  const cookie = new AttributionCookie({ prefix: '__Host-', secure }, secrets, ttlMs)
  const headerOf = (value: string): string => `other=1; ${cookie.name}=${value}`
  return { world, cookie, secrets, headerOf }
}

await test('a link is remembered for its time, to the letter, and not a moment longer', (t) => {
  const { world, cookie, headerOf } = cookieOf(t)
  t.equal(cookie.name, '__Host-attribution')
  t.equal(cookie.enabled, true)
  const header = headerOf(cookie.value(LINK))
  t.strictSame(cookie.read(header), LINK)
  world.now += TTL_MS - 1
  t.strictSame(cookie.read(header), LINK)
  world.now += 1
  t.equal(cookie.read(header), undefined)
  t.end()
})

await test('a link that was remembered before an update of the server still is', (t) => {
  const { cookie, headerOf } = cookieOf(t)
  t.strictSame(cookie.read(headerOf(BEFORE)), LINK)
  t.end()
})

await test('a cookie that is missing, doubled, forged or signed by another secret names nobody', (t) => {
  const { cookie, headerOf } = cookieOf(t)
  const value = cookie.value(LINK)
  const [text = ''] = value.split('.')
  const other = cookieOf(t, TTL_MS, 'another secret of a test, of 32 bytes!').cookie.value(LINK)
  for (const header of [
    undefined,
    '',
    'other=1',
    `${headerOf(value)}; ${cookie.name}=${value}`,
    headerOf(text),
    headerOf(`${text}.`),
    headerOf(`${text}x.${value.split('.')[1]}`),
    headerOf(''),
    headerOf(other),
  ]) {
    t.equal(cookie.read(header), undefined, header ?? 'none')
  }
  t.end()
})

await test('a link that does not count any more is not remembered, though this server has signed it', (t) => {
  const { cookie, headerOf } = cookieOf(t)
  const { utm_source: _source, ...partial } = LINK
  for (const link of [partial, { ...LINK, sidc: 'no GUID' }]) {
    t.equal(cookie.read(headerOf(cookie.value(link))), undefined)
  }
  t.end()
})

await test('after a change of the secret the cookies of the one before count as long as it is kept', (t) => {
  const { cookie, secrets, headerOf } = cookieOf(t)
  const [before = ''] = secrets.current
  const header = headerOf(cookie.value(LINK))
  secrets.change(['a new secret of a test, of 32 bytes!!', before])
  t.strictSame(cookie.read(header), LINK)
  secrets.change(['a new secret of a test, of 32 bytes!!'])
  t.equal(cookie.read(header), undefined)
  t.end()
})

await test('where links are not remembered, a cookie of before counts no more', (t) => {
  const { cookie, headerOf } = cookieOf(t)
  const header = headerOf(cookie.value(LINK))
  const off = cookieOf(t, 0)
  t.equal(off.cookie.enabled, false)
  t.equal(off.cookie.read(header), undefined)
  t.end()
})

await test('the cookie comes with navigations from other sites, for its time, and no page can read it', (t) => {
  const { cookie } = cookieOf(t)
  t.match(cookie.attributes(), { httpOnly: true, sameSite: 'lax', secure: true, path: '/', maxAge: TTL_MS / 1000 })
  t.match(cookie.attributes(0), { httpOnly: true, maxAge: 0 })
  t.match(cookieOf(t, TTL_MS, undefined, false).cookie.attributes(), { secure: false })
  t.end()
})
