import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import { test, type Test } from 'tap'
import { catalog } from '../../src/proxy/catalog.ts'
import { startProxy } from '../support/proxies/usual-proxies.ts'
import { gone } from '../support/upstream/raw-upstream.ts'
import { ACCOUNTS, framing, HOSTS, TARGETS } from './malformed.ts'
import { startWorld, API } from '../support/world.ts'

/** A path that the proxies forbid, so that a request that reaches it was smuggled past them. */
const FORBIDDEN = '/api/account/'
const NICKNAME = '/api/account/v1/nickname'
/** Other spellings of {@link FORBIDDEN}. */
const SPELLINGS: Readonly<Record<string, string>> = {
  'as it is': NICKNAME,
  'dot segments': '/api/trading/../account/v1/nickname',
  'encoded dot segments': '/api/trading/%2e%2e/account/v1/nickname',
  'an encoded letter': '/api/%61ccount/v1/nickname',
  'an encoded slash': '/api%2faccount/v1/nickname',
  'two slashes': '/api//account/v1/nickname',
  'a slash in front': '//api/account/v1/nickname',
  backslashes: '/api\\account\\v1\\nickname',
  'a parameter': '/api;x/account/v1/nickname',
  capitals: '/API/Account/v1/nickname',
  'absolute form': `http://h${NICKNAME}`,
  'absolute form with dot segments': 'http://h/api/v1/../account/v1/nickname',
}

/** Passes bytes on to a port of this machine, and keeps the responses of each connection. */
async function wireTo(t: Test, serverPort: number): Promise<{ port: number; answered: string[] }> {
  const answered: string[] = []
  const wire = createServer((socket) => {
    const server = connect(serverPort, '127.0.0.1')
    const connection = answered.push('') - 1
    socket.on('error', () => server.destroy())
    server.on('error', () => socket.destroy())
    server.on('data', (chunk: Buffer) => (answered[connection] += chunk.toString('latin1')))
    socket.pipe(server).pipe(socket)
  }).listen(0, '127.0.0.1')
  await once(wire, 'listening')
  t.teardown(() => wire.close())
  return { port: (wire.address() as AddressInfo).port, answered }
}

/** Sends bytes on a new connection, and reads until the peer closes it. */
async function exchange(port: number, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  let text = ''
  socket.on('error', () => undefined).on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
  socket.write(bytes, 'latin1')
  await gone(socket)
  return text
}

function isInCatalog(method: string, target: string): boolean {
  const [path = ''] = target.split('?', 1)
  return catalog(undefined).some(
    (endpoint) =>
      endpoint.method === method &&
      new RegExp(`^${endpoint.path.replaceAll(/:\w+/g, '[A-Za-z0-9_-]{1,64}')}$`).test(path),
  )
}

const inOrder = (statuses: number[]): number[] => statuses.sort((one, other) => one - other)

for (const [program, lenient] of [
  ['nginx', false],
  ['nginx', true],
  ['haproxy', false],
  ['haproxy', true],
] as const) {
  await test(`the server sees the requests that ${lenient ? 'a lenient' : 'a usual'} ${program} in front of it sees`, async (t) => {
    const { upstream, cookie, server } = await startWorld(t, { ...API, settings: { TRUST_PROXY: '1' } })
    const wire = await wireTo(t, server.port)
    const proxy = await startProxy(t, { program, lenient, forbidden: FORBIDDEN }, wire.port)

    const head = `Cookie: ${cookie}\r\nX-CSRF: 1\r\n`
    const close = `${head}Connection: close\r\n\r\n`
    const smuggled = `GET ${NICKNAME} HTTP/1.1\r\nHost: h\r\n${head}\r\n`
    const post = (lines: string, body: string): string =>
      `POST ${ACCOUNTS} HTTP/1.1\r\nHost: h\r\n${head}${lines}\r\n${body}`
    const get = (target: string, host = 'Host: h\r\n'): string => `GET ${target} HTTP/1.1\r\n${host}${close}`

    t.match(await exchange(proxy.port, get(ACCOUNTS)), /^HTTP\/1\.1 200 /, 'what is well formed comes through')
    t.equal(upstream.requests.length, 1)
    const chunks = '3;name=value\r\nabc\r\n1;x\r\nd\r\n0\r\nX-Trailer: 1\r\nAuthorization: Bearer mine\r\n\r\n'
    const cases = {
      ...framing(post, smuggled),
      'chunk extensions': post('Transfer-Encoding: chunked\r\n', `${chunks}${smuggled}`),
      'two in a row': post('Content-Length: 2\r\n', `{}${post('Content-Length: 2\r\n', `{}${smuggled}`)}`),
      ...Object.fromEntries(Object.entries(TARGETS).map(([name, target]) => [name, get(target)])),
      ...Object.fromEntries(Object.entries(HOSTS).map(([name, host]) => [name, get(ACCOUNTS, host)])),
      ...Object.fromEntries(Object.entries(SPELLINGS).map(([name, target]) => [`forbidden, ${name}`, get(target)])),
    }
    for (const [name, bytes] of Object.entries(cases)) {
      upstream.reset()
      const responses = await exchange(proxy.port, bytes)
      t.match(responses, /^HTTP\/1\.[01] [2-5]\d\d /, `${name}: answered`)
      for (const { method, target } of upstream.requests) {
        t.ok(isInCatalog(method, target), `${name}: ${method} ${target} is in the catalog`)
        t.notOk(`/api${target}`.startsWith(FORBIDDEN), `${name}: ${target} was not smuggled past the proxy`)
      }
    }
    t.notMatch(upstream.received.join(''), /trailer|bearer mine|name=value/i)

    const forwarded = (await proxy.stop()).filter(({ wasForwarded }) => wasForwarded)
    const answered = [...wire.answered.join('').matchAll(/HTTP\/1\.1 (\d+) /g)]
    t.same(
      inOrder(answered.map(([, status]) => Number(status))),
      inOrder(forwarded.map(({ status }) => Number(status))),
      `an answer of ours for each of the ${forwarded.length} requests that it sent, and no other`,
      { forwarded },
    )
    t.ok(forwarded.length > 20, 'the proxy does not refuse everything by itself')
  })
}
