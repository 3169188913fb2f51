import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'tap'
import { ACCOUNTS } from './malformed.ts'
import { startWorld, API } from '../support/world.ts'
import { nextEvent } from '../support/time/until.ts'

/** What Node's parser reads as 2.0 or 0.9, and what it cannot read at all. */
const VERSIONS = ['HTTP/2.0', 'HTTP/0.9', 'HTTP/1.2', 'HTTP/3.0', 'HTTP/2', '']

await test('a request line that names another version than HTTP/1.0 or HTTP/1.1 gets 505, and nothing goes upstream', async (t) => {
  const { raw, upstream, cookie } = await startWorld(t, API)
  const lines = `Host: bff.example\r\nCookie: ${cookie}\r\nX-CSRF: 1\r\n`
  const refused = (response: string, what: string): void => {
    t.match(response, /^HTTP\/1\.1 505 HTTP Version Not Supported\r\n/, what)
    t.match(response, /\r\ncontent-type: application\/problem\+json\b/i, what)
    t.match(response, /\r\nconnection: (upgrade, )?close\r\n/i, what)
    t.match(response, /\r\nx-content-type-options: nosniff\r\n/i, what)
    t.match(response, /"status":505,.*"code":"bad_request"/, what)
    t.equal(response.split('HTTP/1.1 ').length, 2, `${what}: one response, then the connection ends`)
  }
  for (const version of VERSIONS) {
    const line = version === '' ? '' : ` ${version}`
    refused(await raw(`GET ${ACCOUNTS}${line}\r\n${lines}\r\n`), `GET ${version}`)
    refused(await raw(`POST ${ACCOUNTS}${line}\r\n${lines}Content-Length: 2\r\n\r\n{}`), `POST ${version}`)
    refused(await raw(`GET /nowhere${line}\r\n\r\n`), `GET without a Host ${version}`)
  }
  refused(await raw('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), 'the preface of HTTP/2')
  const chunked = `Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`
  refused(await raw(`POST ${ACCOUNTS} HTTP/2.0\r\n${lines}${chunked}`), 'a body in chunks')
  const upgrade =
    'Origin: http://localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
  for (const path of ['/ws/public', '/ws/session', ACCOUNTS]) {
    refused(await raw(`GET ${path} HTTP/2.0\r\n${lines}${upgrade}\r\n`), `an upgrade of ${path}`)
  }
  const good = `GET ${ACCOUNTS} HTTP/1.1\r\n${lines}\r\n`
  refused(await raw(`GET ${ACCOUNTS} HTTP/2.0\r\n${lines}\r\n${good}`), 'a request before a good one')
  const keep = `GET ${ACCOUNTS} HTTP/2.0\r\nConnection: keep-alive\r\n${lines}\r\n`
  refused(await raw(keep), 'a connection that is to be kept alive')
  t.match(await raw(keep + good), /^HTTP\/1\.1 505 /, 'kept alive, before a good request')
  t.same(upstream.requests, [], 'no request reaches upstream')
})

await test('HTTP/2.0 after a good request of the same connection gets 505, and ends the connection', async (t) => {
  const { raw, upstream, cookie, connection } = await startWorld(t, API)
  const lines = `Host: bff.example\r\nCookie: ${cookie}\r\nX-CSRF: 1\r\n\r\n`
  const good = `GET ${ACCOUNTS} HTTP/1.1\r\n${lines}`
  const bad = `GET ${ACCOUNTS} HTTP/2.0\r\n${lines}`
  const pipelined = await raw(good + bad)
  t.match(pipelined, /^HTTP\/1\.1 200 [^]*HTTP\/1\.1 505 /, 'pipelined')
  t.equal(upstream.requests.length, 1)

  const socket = await connection()
  socket.write(good)
  const [first] = (await nextEvent(socket, 'data')) as [Buffer]
  t.match(String(first), /^HTTP\/1\.1 200 /)
  socket.write(bad)
  t.match(await text(socket), /HTTP\/1\.1 505 [^]*"code":"bad_request"/, 'kept alive')
  t.equal(upstream.requests.length, 2)
})

await test('the ops listener answers 505 to HTTP/2.0, HTTP/0.9 and a line without a version', async (t) => {
  const { server } = await startWorld(t, API)
  const { hostname, port } = new URL(server.opsUrl)
  const ask = (line: string): Promise<string> => {
    const socket = connect(Number(port), hostname)
    socket.write(`${line}\r\nHost: ops\r\nConnection: close\r\n\r\n`)
    return text(socket)
  }
  for (const version of ['HTTP/2.0', 'HTTP/0.9', '']) {
    const answer = await ask(`GET /livez${version === '' ? '' : ` ${version}`}`)
    t.match(answer, /^HTTP\/1\.1 505 [^]*\r\nconnection: close\r\n/i, version)
  }
  for (const version of ['HTTP/1.0', 'HTTP/1.1']) t.match(await ask(`GET /livez ${version}`), /^HTTP\/1\.1 200 /)
})
