import { connect } from 'node:net'
import type { JWTPayload } from 'jose'
import { test } from 'tap'
import {
  epoch,
  EVENTS,
  issuerKey,
  oidcWorld,
  postForm,
  sign,
  signShared,
  unsigned,
  type Claims,
} from '../support/login/oidc-world.ts'
import { isLoggedIn } from '../support/login/token-endpoint.ts'
import { exactly } from '../support/exactly.ts'
import { nextEvent } from '../support/time/until.ts'

await test('POST /auth/backchannel-logout: 400 for each fault of a token, in this order', async (t) => {
  const world = await oidcWorld(t, { settings: { BACKCHANNEL_FROM: '127.0.0.1' } })
  const { browser } = await world.user('ada', { sid: 's1' })
  const valid = { sub: 'ada', sid: 's1' }
  const stranger = issuerKey('first')
  const nonce = { nonce: 'n' }
  const steps: (readonly [fault: string, make: (claims: JWTPayload) => Promise<string>, claims: Claims])[] = []
  const add = (fault: string, claims: Claims, header: Record<string, unknown> = {}): void => {
    steps.push([fault, (all) => sign(world.key, all, { typ: 'logout+jwt', ...header }), claims])
  }
  steps.push(['shape', async () => 'no.token', {}], ['shape', async () => 'a.b.c', {}], ['shape', async () => '', {}])
  for (const around of [
    (token: string) => `${token}\n`,
    (token: string) => ` ${token}`,
    (token: string) => `${token}==`,
  ]) {
    steps.push(['shape', async (claims) => around(await sign(world.key, claims)), {}])
  }
  steps.push(['algorithm', async (claims) => unsigned(claims), nonce])
  steps.push(['algorithm', (claims) => signShared(world.key, claims), { iss: 'x' }])
  add('issuer', { iss: 'https://other.example', aud: 'x' })
  add('issuer', { iss: undefined })
  add('audience', { aud: 'other-client' }, { typ: 'at+jwt' })
  add('audience', { aud: undefined })
  add('type', { iat: epoch(-400) }, { typ: 'at+jwt' })
  add('type', {}, { typ: 7 })
  add('age', { iat: undefined, exp: epoch(-400) })
  add('age', { iat: epoch(40) })
  add('age', { iat: epoch(-310) })
  add('age', { iat: epoch(-3610), exp: epoch(10) })
  add('age', { iat: epoch(-310), exp: epoch(-100) })
  add('expired', { exp: epoch(-40), events: {} })
  add('expired', { exp: 'soon' })
  add('events', { events: {}, sub: undefined, sid: undefined })
  for (const events of [
    undefined,
    [],
    'x',
    { other: {} },
    Object.fromEntries([[Object.keys(EVENTS)[0] ?? '', true]]),
  ]) {
    add('events', { events })
  }
  add('subject', { sub: undefined, sid: undefined, ...nonce })
  for (const sub of ['', 7, 'x'.repeat(256), null]) add('subject', { sub, sid: undefined })
  add('subject', { sub: null, sid: null })
  add('subject', { sid: [] })
  add('nonce', nonce)
  add('nonce', { nonce: null })
  steps.push(['signature', (claims) => sign(stranger, claims), {}])
  steps.push(['signature', async (claims) => `${(await sign(world.key, claims)).slice(0, -8)}AAAAAAAA`, {}])
  /** What the provider is told, by the fault. */
  const details = new Map<string, string>()
  for (const [fault, make, claims] of steps) {
    const before = world.server.log.length
    const response = await world.postLogout(await make(world.logoutClaims({ ...valid, ...claims })))
    const body = (await response.json()) as object
    t.match(body, { status: 400, code: 'bad_request', error: 'invalid_request' }, `${fault} ${JSON.stringify(claims)}`)
    const problem = body as { detail: string }
    t.ok(problem.detail.length > 20)
    t.equal(details.get(fault) ?? problem.detail, problem.detail, `${fault}, and no other fault, is told`)
    details.set(fault, problem.detail)
    t.ok(world.server.log.length >= before)
  }
  t.equal(new Set(details.values()).size, details.size, 'each fault has its own words')
  t.ok(await isLoggedIn(browser, world.server.url), 'the session lives')
  const allowed: (readonly [Claims, Record<string, unknown>])[] = [
    [{ iat: epoch(20) }, { typ: undefined }],
    [{ iat: epoch(-290), aud: ['other', 'test-client'] }, { typ: 'JWT' }],
    [{ iat: epoch(-3500), exp: epoch(-20) }, {}],
    [{ exp: epoch(10), sub: 'x'.repeat(255) }, {}],
    [{}, { typ: 'application/logout+jwt' }],
    [{}, { typ: 'Application/Logout+JWT' }],
    [{ sid: null, exp: null }, {}],
    [{ sub: null, sid: 'nobody' }, {}],
  ]
  for (const [claims, header] of allowed) {
    const token = await world.logoutToken({ sub: 'nobody', ...claims }, header)
    t.equal((await world.postLogout(token)).status, 200, JSON.stringify(claims))
  }
})

await test('POST /auth/backchannel-logout: a wrong clock leaves a line that says by how much', async (t) => {
  const world = await oidcWorld(t)
  await world.postLogout(await world.logoutToken({ sub: 'ada', iat: epoch(120) }))
  await world.postLogout(await world.logoutToken({ sub: 'ada', iat: epoch(-400) }))
  const lines = world.server.log.filter(({ audit }) => audit === 'provider_logout_refused')
  t.match(
    lines,
    exactly({ level: 40, fault: 'age', age: 0, msg: /compare its clock with ours/ }, { fault: 'age', ahead: 0 }),
  )
  const [ahead, late] = [lines[0]?.['ahead'], lines[1]?.['age']].map(Number)
  t.ok(Math.abs((ahead ?? 0) - 120) < 10 && Math.abs((late ?? 0) - 400) < 10, `${ahead}, ${late}`)
})

await test('POST /auth/backchannel-logout takes one form of at most 16 KiB, however slowly it comes', async (t) => {
  const world = await oidcWorld(t, { settings: { BACKCHANNEL_FROM: '127.0.0.0/8' } })
  const { url } = world.server
  const token = await world.logoutToken({ sub: 'ada' })
  const expect = async (response: Response, name: string): Promise<void> => {
    t.match(await response.json(), { status: 400, code: 'bad_request', error: 'invalid_request' }, name)
  }
  await expect(await postForm(url, {}), 'no token')
  await expect(
    await postForm(
      url,
      new URLSearchParams([
        ['logout_token', token],
        ['logout_token', token],
      ]),
    ),
    'two',
  )
  await expect(await postForm(url, { logout_token: token, more: 'x'.repeat(16_400) }), 'more than 16 KiB')
  for (const type of ['application/json', 'text/plain', 'application/x-www-form-urlencodedx', 'form', '']) {
    const body = new URLSearchParams({ logout_token: token }).toString()
    const init = { method: 'POST', body: Buffer.from(body), headers: type === '' ? {} : { 'content-type': type } }
    await expect(await fetch(`${url}/auth/backchannel-logout`, init), `the type ${type}`)
  }
  t.equal((await fetch(`${url}/auth/backchannel-logout`)).status, 405)
  t.equal((await fetch(`${url}/auth/backchannel-logout`, { method: 'POST' })).status, 400)
  t.equal((await postForm(url, { logout_token: token, other: 'ignored' })).status, 200)
  const cross = {
    origin: 'https://elsewhere.example',
    cookie: '__Host-session=x',
    'content-type': 'application/x-www-form-urlencoded; charset=UTF-8',
  }
  const body = new URLSearchParams({ logout_token: token }).toString()
  t.equal((await fetch(`${url}/auth/backchannel-logout`, { method: 'POST', headers: cross, body })).status, 200)
  t.match(await byteByByte(world.server.port, body), /^HTTP\/1\.1 200 /)
})

/** Posts a form one byte at a time. */
async function byteByByte(port: number, body: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.setNoDelay(true)
  socket.write(
    `POST /auth/backchannel-logout HTTP/1.1\r\nHost: localhost:${port}\r\nConnection: close\r\n` +
      `Content-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n`,
  )
  for (const byte of body) if (!socket.write(byte)) await nextEvent(socket, 'drain')
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
  await nextEvent(socket, 'close')
  return text
}
