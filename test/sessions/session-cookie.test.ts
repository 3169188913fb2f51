import { test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { createSigner, isSame, SessionCookie } from '../../src/sessions/session-cookie.ts'
import { sessionKey } from '../../src/store/keys.ts'

const [OLD, NEW] = ['an-old-secret-of-thirty-two-bytes-at-least', 'a-new-secret-of-thirty-two-bytes-at-least']

const header = (...values: string[]) => values.map((value) => `__Host-session=${value}`).join('; ')

/** The session cookie of a server with these secrets. */
function cookieOf(secrets: readonly string[] = [NEW], secure = true) {
  const changeable = new Changeable(secrets)
  const cookie = new SessionCookie({ prefix: '__Host-', secure }, changeable)
  return { changeable, cookie }
}

await test('a signed value is the value, a dot and a signature that differs for each secret and purpose', (t) => {
  const signed = createSigner(new Changeable([NEW]), 'one').sign('a.value')
  t.match(signed, /^a\.value\.[\w+/]{43}$/)
  t.not(createSigner(new Changeable([NEW]), 'other').sign('a.value'), signed)
  t.not(createSigner(new Changeable([OLD]), 'one').sign('a.value'), signed)
  t.throws(() => createSigner(new Changeable([] as string[]), 'one').sign('a.value'), { message: 'there is no secret' })
  t.end()
})

await test('a cookie that an earlier version has signed is valid', (t) => {
  t.equal(cookieOf([NEW, OLD]).cookie.verify('id.f12sJXw/vl77fBbtqDiB3Ej4dZFpXPRzbFvWUd60lLE'), 'id')
  t.end()
})

await test('all secrets verify, and what another than the first has signed is to be renewed', (t) => {
  const moved = createSigner(new Changeable([NEW, OLD]), 'one')
  const old = createSigner(new Changeable([OLD]), 'one').sign('value')
  t.same(moved.unsign(moved.sign('value')), { valid: true, renew: false, value: 'value' })
  t.same(moved.unsign(old), { valid: true, renew: true, value: 'value' })
  const invalid = { valid: false, renew: false, value: null }
  t.same(createSigner(new Changeable([NEW]), 'one').unsign(old), invalid)
  for (const value of [`${old}x`, `x${old}`, old.slice(0, -1), old.replace('.', ''), 'value', '.', '', 'value.']) {
    t.same(moved.unsign(value), invalid, value)
  }
  const empty = moved.sign('')
  t.same(moved.unsign(empty), { valid: true, renew: false, value: '' })
  // Without a dot, the whole of it would be the signature of nothing.
  t.same(moved.unsign(empty.slice(1)), { valid: true, renew: false, value: '' })
  t.end()
})

await test('signatures are the same only if all of their bytes are', (t) => {
  t.equal(isSame('abc', 'abc'), true)
  for (const other of ['abd', 'ab', 'abcd', '', 'ä']) t.equal(isSame('abc', other), false)
  t.end()
})

await test('the cookie has the prefix of the server, and is for its own pages alone', (t) => {
  const { cookie } = cookieOf()
  t.equal(cookie.name, '__Host-session')
  // The clock of the store may step back a little between two looks at it.
  t.match(cookie.attributes(28_800_003), { maxAge: 28_800 }, 'never longer than the session')
  t.match(cookie.attributes(1500), { path: '/', httpOnly: true, secure: true, sameSite: 'strict', maxAge: 2 })
  t.match(cookieOf([NEW], false).cookie.attributes(0), { secure: false, maxAge: 0 })
  t.end()
})

await test('the session of a request is that of its only cookie, if that is signed as a session', (t) => {
  const { cookie } = cookieOf()
  const signed = cookie.signer.sign('id')
  t.equal(cookie.verify(signed), 'id')
  t.equal(cookie.key(`other=1; ${header(signed)}`), sessionKey('id'))
  t.equal(cookie.value(header(signed)), signed)
  for (const none of [undefined, '', 'other=1', header(signed, signed)]) {
    t.equal(cookie.value(none), undefined)
    t.equal(cookie.key(none), undefined)
  }
  t.equal(cookie.key(header('id.forged')), undefined)
  t.equal(cookie.key(header(createSigner(new Changeable([NEW]), 'other').sign('id'))), undefined)
  t.equal(cookie.value(header('id.forged')), 'id.forged')
  t.end()
})

await test('the signature of a value that is too long is not looked at', (t) => {
  const { cookie } = cookieOf()
  const fits = 'x'.repeat(256 - 44)
  t.equal(cookie.verify(cookie.signer.sign(fits)), fits)
  t.equal(cookie.verify(cookie.signer.sign(`${fits}x`)), undefined)
  t.end()
})

await test('a logout may end the session of an id without a valid signature, if it is the only one', (t) => {
  const { cookie } = cookieOf()
  const [one, two, three] = ['1', '2', '3'].map((id) => cookie.signer.sign(id)) as [string, string, string]
  t.same(cookie.named(undefined), [])
  t.same(cookie.named('other=1'), [])
  t.same(cookie.named(header(one)), [{ id: '1', isAuthentic: true }])
  t.same(cookie.named(header('i.d.forged')), [{ id: 'i.d', isAuthentic: false }])
  t.same(cookie.named(header('id')), [{ id: '', isAuthentic: false }])
  t.same(cookie.named(header('id.forged', one)), [{ id: '1', isAuthentic: true }])
  t.same(cookie.named(header(one, two, three)), [
    { id: '1', isAuthentic: true },
    { id: '2', isAuthentic: true },
  ])
  t.same(cookie.named(header('id.forged', 'other.forged')), [])
  t.end()
})

await test('what is made for all signatures is made again when the secrets change', (t) => {
  const { changeable, cookie } = cookieOf([OLD])
  let made = 0
  const current = cookie.perSecrets(() => ++made)
  t.same([current(), current()], [1, 1])
  const old = cookie.signer.sign('id')
  changeable.change([NEW])
  t.same([current(), current()], [2, 2])
  t.equal(cookie.verify(old), undefined)
  t.equal(cookie.verify(cookie.signer.sign('id')), 'id')
  t.end()
})
