import { test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { finishedValue, LoginCookies } from '../../src/login/login-cookies.ts'
import { openLogin, sealLogin, type LoginState } from '../../src/login/login-record.ts'
import { Envelope } from '../../src/sessions/envelope.ts'

const SECRETS = new Changeable(['a secret'])
/** A login with a nonce that an instance of version 0.3 has started with these secrets. */
const OLDER = {
  name: '__Host-login-QwH4h1yP',
  value: 'DPdR8VBmPE4s8Z5447jGdmLMfGEtC5Wj.mx16hfgp.Bglq1GQxNQK9VFw2EOqs1v',
  state: 'QwH4h1yPT5pUCKW-csrx3TLo_ZOsh0c9TrBPwpxY5aw',
  record:
    'v1.PRae3IJI.BDG4-sHP8nQhlyLBt8LGJzfZOBM5rWUzdKBbN5yPCC16uPuK_EJAHlkSsltTm3wtcH_u_BB95YllMk7Gi5RSFJ0WuK1oxOQTzIfC0UivoDDOSBvdJRr1-sVRiDnEYIB2cPhjZdE',
}

const cookies = (secrets = SECRETS, prefix = '__Host-') => new LoginCookies({ prefix, secure: true }, secrets)
const pair = ({ name, value }: { name: string; value: string }) => `${name}=${value}`

await test('a login that an instance of version 0.3 has started is found here', (t) => {
  const [cookie] = cookies().read(`other=1; ${pair(OLDER)}`)
  if (cookie === undefined) throw new Error('not read')
  t.match(cookie, { name: OLDER.name, value: OLDER.value, state: OLDER.state, startedAt: 1_795_916_784_265 })
  t.match(openLogin(new Envelope(SECRETS), cookie, OLDER.record), { is: 'pending', nonce: 'n', verifier: 'v' })
  t.end()
})

await test('a record is opened by the cookie of its login alone', (t) => {
  const envelope = new Envelope(SECRETS)
  const [one, other] = [cookies().create(), cookies().create()]
  const state = { is: 'pending', verifier: 'v', nonce: 'n' } as unknown as LoginState
  const text = sealLogin(envelope, one, state)
  t.same(openLogin(envelope, one, text), state)
  for (const wrong of [other, { ...one, secret: other.secret }, { ...one, state: other.state }]) {
    t.equal(openLogin(envelope, wrong, text), undefined)
  }
  t.end()
})

await test('a cookie has the first characters of its state in its name, and no cookie is read that was made up', (t) => {
  const made = cookies().create()
  t.equal(made.name, `__Host-login-${made.state.slice(0, 8)}`)
  t.same(cookies().read(pair(made)), [made])
  t.same(cookies().read(), [])
  const [secret = '', start = '', mac = ''] = made.value.split('.')
  for (const value of [
    '',
    secret,
    `${secret}.${start}`,
    `${secret}.${start}.`,
    `${secret}.${start}.${mac.slice(1)}`,
    `${secret}.${start}.${'A'.repeat(22)}`,
    `${secret}.zzzzzzzz.${mac}`,
    `x${secret}.${start}.${mac}`,
    `${secret}x.${start}.${mac}`,
    `..${mac}`,
  ]) {
    t.same(cookies().read(pair({ name: made.name, value })), [], value)
  }
  t.same(cookies().read(pair({ ...made, name: '__Host-login-another8' })), [], 'another name')
  t.same(cookies(SECRETS, 'dev-').read(pair(made)), [], 'another prefix')
  t.same(cookies(new Changeable(['another secret'])).read(pair(made)), [])
  t.same(
    cookies(new Changeable(['another secret', 'a secret'])).read(pair(made)),
    [made],
    'a secret that was the first',
  )
  t.end()
})

await test('of many login cookies the newest thirty are read, the oldest first', (t) => {
  const made = Array.from({ length: 35 }, () => cookies().create())
  const read = cookies().read(made.map(pair).join('; '))
  t.equal(read.length, 30)
  t.ok(read.every(({ startedAt }, at) => at === 0 || startedAt >= (read[at - 1]?.startedAt ?? 0)))
  const [first, last] = [made[0], made[34]]
  if (first === undefined || last === undefined) throw new Error('none')
  t.notOk(read.some(({ value }) => value === first.value))
  t.ok(read.some(({ value }) => value === last.value))
  const finished = { ...first, value: finishedValue(first.value) }
  t.equal(finishedValue(finished.value), finished.value)
  const found = cookies().read([finished, ...made.slice(1)].map(pair).join('; '))
  t.same(
    found.filter(({ state }) => state === first.state),
    [{ ...first, value: `${first.value}.f` }],
    'that of a finished login is read before others',
  )
  t.end()
})
