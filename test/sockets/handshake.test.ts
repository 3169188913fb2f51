import { request as httpRequest, type IncomingMessage } from 'node:http'
import { test } from 'tap'
import { nextEvent } from '../support/time/until.ts'
import { PUBLIC, TRADING } from '../support/user.ts'
import { startWorld, type World, RELAY } from '../support/world.ts'

const KEY = 'dGhlIHNhbXBsZSBub25jZQ=='

/** The HTTP response to a handshake; '' leaves a header out. */
async function responseTo(
  world: World<'scripted'>,
  path: string,
  headers: Record<string, string>,
): Promise<IncomingMessage & { body: string }> {
  const all = Object.entries({
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': KEY,
    origin: world.server.url,
    ...headers,
  }).filter(([, value]) => value !== '')
  const request = httpRequest({
    host: '127.0.0.1',
    agent: false,
    port: world.server.port,
    path,
    headers: Object.fromEntries(all),
  })
  request.end()
  const [response] = (await nextEvent(request, 'response')) as [IncomingMessage]
  let body = ''
  for await (const chunk of response) body += String(chunk)
  return Object.assign(response, { body })
}

const PLAIN = { connection: '', upgrade: '', 'sec-websocket-version': '', 'sec-websocket-key': '' }

await test('a handshake without the right Origin, Upgrade, version or key gets an HTTP problem, and causes no call upstream', async (t) => {
  const world = await startWorld(t, RELAY)
  const { cookie } = world
  const cases: [why: string, headers: Record<string, string>, status: number, code: string, path?: string][] = [
    ['a foreign Origin', { origin: 'https://evil.example' }, 403, 'origin_rejected'],
    ['no Origin', { origin: '' }, 403, 'origin_rejected'],
    ['Origin null', { origin: 'null' }, 403, 'origin_rejected'],
    ['an Origin that only begins well', { origin: `${world.server.url}.evil.example` }, 403, 'origin_rejected'],
    ['two Origins', { origin: `${world.server.url}, https://evil.example` }, 403, 'origin_rejected'],
    ['a foreign Origin without Upgrade', { ...PLAIN, origin: 'https://evil.example' }, 403, 'origin_rejected'],
    ['a foreign Origin before anything else', { origin: 'null', 'sec-websocket-key': '' }, 403, 'origin_rejected'],
    ['no Upgrade', PLAIN, 426, 'upgrade_required'],
    ['no Upgrade, no Origin', { ...PLAIN, origin: '' }, 426, 'upgrade_required'],
    ['another protocol', { upgrade: 'h2c' }, 426, 'upgrade_required'],
    ['another version', { 'sec-websocket-version': '8' }, 426, 'upgrade_required'],
    ['no key', { 'sec-websocket-key': '' }, 400, 'bad_request'],
    ['a bad key', { 'sec-websocket-key': 'short' }, 400, 'bad_request'],
    ['a subprotocol that is none', { 'sec-websocket-protocol': 'a b' }, 400, 'bad_request'],
    ['an empty one', { 'sec-websocket-protocol': 'a,,b' }, 400, 'bad_request'],
    ['one in quotes', { 'sec-websocket-protocol': '"a"' }, 400, 'bad_request'],
    ['the same twice', { 'sec-websocket-protocol': 'a, b,a' }, 400, 'bad_request'],
  ]
  for (const path of [PUBLIC, TRADING]) {
    for (const [why, headers, status, code] of cases) {
      const response = await responseTo(world, path, { cookie, ...headers })
      t.equal(response.statusCode, status, `${path}: ${why}`)
      t.match(JSON.parse(response.body), { code, status })
      t.match(response.headers, { 'x-content-type-options': 'nosniff', 'x-request-id': /^[\w-]{36}$/ })
      if (status === 426)
        t.match(response.headers, { upgrade: 'websocket', connection: 'upgrade, close' }, `${path}: ${why}`)
    }
  }
  for (const id of ['a.b', 'a%20b', 'ä', 'a'.repeat(65), 'a'.repeat(200), 'a'.repeat(8000), '%2e%2e', '']) {
    const response = await responseTo(world, `/ws/trading/${encodeURI(id)}`, { cookie })
    t.equal(response.statusCode, 404, `${id.slice(0, 70)} of ${id.length} characters is no account id`)
    t.match(JSON.parse(response.body), { code: 'not_found' })
  }
  for (const id of ['a'.repeat(200), 'a'.repeat(8000)]) {
    const response = await fetch(`${world.server.url}/api/payment-agents/v1/agents/${id}`, {
      headers: { cookie, 'x-csrf': '1' },
    })
    t.equal(response.status, 404, 'the API accepts no such id either')
  }
  t.equal((await responseTo(world, '/ws/trading/a.b', { cookie })).statusCode, 404)
  t.equal((await responseTo(world, '/ws/trading/a.b', { cookie, origin: 'null' })).statusCode, 403)
  const plain = await responseTo(world, PUBLIC, PLAIN)
  t.match(plain.headers, { upgrade: 'websocket', connection: 'upgrade, close' })
  t.same(world.upstream.otpRequests, [], 'no one-time URL is requested')
  t.same(world.upstream.upgrades, [], 'no socket is opened upstream')
  t.same(await world.metric('bff_relay_endings_total'), new Map())
  await world.quiet()
})

await test('a handshake with a body is refused, and its body is neither frames nor a request', async (t) => {
  const world = await startWorld(t, RELAY)
  const { cookie, server } = world
  const handshake = (path: string, framing: string): string =>
    `GET ${path} HTTP/1.1\r\nHost: bff.example\r\nOrigin: ${server.url}\r\nCookie: ${cookie}\r\nConnection: Upgrade\r\n` +
    `Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${KEY}\r\n${framing}\r\n`
  const bodies: [framing: string, body: string][] = [
    ['Content-Length: 4\r\n', 'body'],
    // The rest never comes.
    ['Content-Length: 400\r\n', 'body'],
    ['Transfer-Encoding: chunked\r\n', '4\r\nbody\r\n0\r\n\r\n'],
    ['Transfer-Encoding: chunked\r\n', '0\r\n\r\n'],
  ]
  for (const path of [PUBLIC, TRADING, '/ws/session']) {
    for (const [framing, body] of bodies) {
      const response = await world.raw(handshake(path, framing) + body)
      const what = `${path}, ${framing.trim()}, ${body.length} bytes`
      t.match(response, /^HTTP\/1\.1 400 [^]*\r\nconnection: close\r\n[^]*has no body[^]*"bad_request"/i, what)
      t.equal(response.match(/^HTTP\/1\.1 /gm)?.length, 1, `${what}: one response, then the connection ends`)
    }
    const empty = await world.raw(handshake(path, 'Content-Length: 0\r\n'))
    t.match(empty, /^HTTP\/1\.1 101 /, `${path}: an empty body is none`)
  }
  t.equal(world.upstream.otpRequests.length, 1, 'only for the handshake without a body')
  t.notMatch(JSON.stringify(server.log), '"level":50')
})

await test('GET /ws/trading/:account without a session is closed with login_required, and GET /ws/public needs none', async (t) => {
  const world = await startWorld(t, RELAY)
  const { cookie } = world
  const refused = { code: 4401, reason: 'login_required' }
  for (const other of ['', `${cookie}; ${cookie}`, `${cookie}x`, cookie.replace('session=', 'session=x'), 'a=b']) {
    t.same(await world.socket(TRADING, { headers: { cookie: other } }).closed, refused, other.slice(0, 20))
  }
  t.same(world.upstream.otpRequests, [])
  t.same((await world.socket(PUBLIC, { headers: { cookie: '' } }).opened()).received, [], 'the public socket opens')
})

await test('upstream gets the bearer and no header of the browser, and no secret is in the log', async (t) => {
  const world = await startWorld(t, { ...RELAY, settings: { SERVICE_APP_ID: 'app-77', LOG_LEVEL: 'trace' } })
  const client = await world
    .socket(TRADING, { headers: { authorization: 'Bearer of-the-browser', 'x-forwarded-for': '1.2.3.4' } })
    .opened()
  const [asked] = world.upstream.otpRequests
  t.equal(asked?.url, '/trading/v1/options/accounts/VRTC100/otp')
  t.match(asked?.headers, { 'service-app-id': 'app-77', authorization: /^Bearer (?!of-the-browser)/ })
  const [opened] = world.upstream.upgrades
  for (const name of ['cookie', 'origin', 'authorization', 'x-forwarded-for', 'sec-websocket-extensions']) {
    t.notOk(name in (opened?.headers ?? {}), `no ${name}`)
  }
  t.notOk('cookie' in (asked?.headers ?? {}))
  t.equal(client.socket.extensions, '')
  t.equal(client.socket.protocol, '')
  // This client ends the connection when no subprotocol is confirmed, as browsers do.
  const offering = world.socket(TRADING, { headers: { 'sec-websocket-protocol': 'graphql-ws, mqtt' } })
  const [response] = (await nextEvent(offering.socket, 'upgrade')) as [IncomingMessage]
  t.notOk('sec-websocket-protocol' in response.headers, 'no subprotocol is confirmed')
  t.notOk(
    'sec-websocket-protocol' in (world.upstream.upgrades.at(-1)?.headers ?? {}),
    'no subprotocol is offered to upstream',
  )
  offering.socket.terminate()
  client.socket.close()
  await world.quiet()
  const secrets = [String(asked?.headers.authorization).slice(7), 'secret-otp', 'otp=']
  const log = JSON.stringify(world.server.log)
  for (const secret of secrets) t.notOk(log.includes(secret), 'the secret is not in the log')
})
