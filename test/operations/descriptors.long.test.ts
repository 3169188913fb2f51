import { once } from 'node:events'
import { Agent, request, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { test, type Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { startRedis } from '../../sandbox/redis-process.ts'
import { BrowserSocket } from '../support/browser/browser-socket.ts'
import { ScriptedUpstream } from '../support/upstream/scripted-upstream.ts'
import { rawUpstream } from '../support/upstream/raw-upstream.ts'
import { ready, serverProcess, type ServerProcess } from '../support/server/server-process.ts'
import { ALONE } from '../support/server/settings.ts'
import { failureCount } from '../support/telemetry/lines.ts'
import { said } from '../support/server/two-workers.ts'
import { until } from '../support/time/until.ts'

/** A limit of file descriptors that suffices for a start and is soon used up. */
const FEW = 128
const LOOPBACK = '127.0.0.1'
const NO_DESCRIPTOR =
  'no file descriptor is left: raise the limit of open files of this process (LimitNOFILE, ulimit -n), or lower MAX_RELAYS'

/** Lines at warn level or above, without those that name the lack of descriptors. */
function otherProblems(server: ServerProcess): string[] {
  const lines = server.output().stdout.split('\n').slice(0, -1)
  return lines.filter(
    (line) => /"level":[456]0/.test(line) && !/"audit"|file descriptor|files open|is not set/.test(line),
  )
}

/** Keeps more silent connections open than the server has descriptors. @returns a function that closes them */
async function exhaustDescriptors(t: Test, { port }: ServerProcess): Promise<() => Promise<void>> {
  const open = new Set<Socket>()
  const over = new AbortController()
  const refused = Promise.withResolvers<void>()
  const openOne = (): void => {
    if (over.signal.aborted) return
    const socket = connect(port, '127.0.0.1').on('error', () => undefined)
    open.add(socket)
    socket.on('close', () => {
      open.delete(socket)
      // The server closes the connections that it has no descriptors for.
      refused.resolve()
      setTimeout(openOne, 20)
    })
  }
  for (let opened = 0; opened < FEW + 20; opened++) openOne()
  t.teardown(() => over.abort())
  await refused.promise
  return async () => {
    over.abort()
    for (const socket of open) socket.destroy()
    await until(() => open.size === 0)
  }
}

/** Sends requests over one connection, which stays open. */
function keepAliveClient(t: Test, port: number): (path: string, cookie?: string) => Promise<TextResponse> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  return async (path, cookie = '') => {
    const headers = { 'x-csrf': '1', cookie }
    const get = request({ host: '127.0.0.1', port, path, agent, headers }).end()
    const [response] = (await once(get, 'response')) as [IncomingMessage]
    return { status: response.statusCode ?? 0, headers: response.headers, body: await text(response) }
  }
}

interface TextResponse {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

await test('A start logs a warning if the limit of open files is too low for MAX_RELAYS', async (t) => {
  const warned = async (descriptors: number, maxRelays: string): Promise<unknown[]> => {
    const server = await serverProcess(t, { ...ALONE, MAX_RELAYS: maxRelays }, { descriptors })
    t.ok(await ready(server))
    server.child.kill('SIGTERM')
    await server.exited
    // All lines have arrived only now.
    const lines = server.output().stdout.split('\n').slice(0, -1)
    const parsed = lines.map((line) => JSON.parse(line) as { level: number; msg: string })
    return parsed.filter(({ msg }) => msg.includes('files open')).map(({ level, msg }) => `${level} ${msg}`)
  }
  const [few, many] = await Promise.all([warned(FEW, '1000'), warned(4300, '1000')])
  t.same(few, [
    '40 This process may have 128 files open, and MAX_RELAYS=1000 takes up to 4240: raise the limit (LimitNOFILE, ulimit -Hn), or lower MAX_RELAYS',
  ])
  t.same(many, [])
})

for (const host of [LOOPBACK, 'localhost']) {
  await test(`Without a free descriptor, requests to upstream and provider at ${host} fail as our own error until one is free`, async (t) => {
    const upstream = await rawUpstream(t)
    const sockets = await ScriptedUpstream.start(t)
    const server = await serverProcess(
      t,
      {
        ...ALONE,
        API_URL: upstream.url.replace(LOOPBACK, host),
        AUTH_URL: `http://${host}:${await freePort()}`,
        WS_URL: `ws://${sockets.host}`.replace(LOOPBACK, host),
        HEALTH_SECONDS: '1',
        MAX_PUBLIC_RELAYS_PER_IP: '1000',
      },
      { descriptors: FEW },
    )
    t.ok(await ready(server))
    const get = keepAliveClient(t, server.port)
    t.equal((await get('/auth/session')).status, 200)
    const browser = connect(server.port, '127.0.0.1')
    await once(browser, 'connect')
    const login = await get('/auth/login')
    const state = new URL(login.headers.location ?? '').searchParams.get('state')
    const release = await exhaustDescriptors(t, server)

    const call = await get('/api/v1/health')
    t.equal(call.status, 502)
    t.match(JSON.parse(call.body), { code: 'upstream_unreachable' })
    t.equal(upstream.requests.length, 0)
    const callback = await get(`/auth/callback?code=x&state=${state}`, login.headers['set-cookie']?.[0]?.split(';')[0])
    t.match(callback.headers.location, 'auth_error=provider_unavailable')
    const handshake = `GET /ws/public HTTP/1.1\r\nHost: h\r\nOrigin: ${ALONE.PUBLIC_URL}\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}\r\n\r\n`
    browser.write(handshake)
    let received = ''
    browser.on('data', (chunk: Buffer) => (received += chunk.toString('latin1')))
    await until(() => /^HTTP\/1\.1 101 [^]*upstream_unreachable/.test(received), 'the page can read the reason')
    await until(
      () => failureCount(said(server, NO_DESCRIPTOR), NO_DESCRIPTOR) === 3,
      'the failures of the API call, the exchange and the socket are logged',
    )
    t.equal(said(server, NO_DESCRIPTOR)[0]?.['level'], 50)
    t.same(otherProblems(server), [], 'no other cause is logged')

    await release()
    await until(async () => (await get('/api/v1/health')).status === 200, 'the server reaches upstream again')
    const metrics = await (await fetch(`http://127.0.0.1:${server.opsPort}/metrics`)).text()
    t.match(metrics, /outcome="no_descriptor"\} [1-9]/)
    t.notMatch(metrics, /outcome="unreachable"/)
    const line = new BrowserSocket(`ws://127.0.0.1:${server.port}/ws/public`, { origin: ALONE.PUBLIC_URL })
    await line.opened()
    line.socket.terminate()
    browser.destroy()
    server.child.kill('SIGTERM')
    t.equal(await server.exited, 0)
  })
}

await test('Without a free descriptor, reconnects to Redis fail as our own error until one is free', async (t) => {
  const port = await freePort()
  const first = await startRedis([], port)
  t.teardown(() => first.close())
  const server = await serverProcess(t, { ...ALONE, REDIS_URL: `redis://localhost:${port}` }, { descriptors: FEW })
  t.ok(await ready(server))
  const release = await exhaustDescriptors(t, server)
  await first.close()
  await until(() => said(server, NO_DESCRIPTOR).length > 0)
  t.equal(said(server, NO_DESCRIPTOR)[0]?.['level'], 50)
  const second = await startRedis([], port)
  t.teardown(() => second.close())
  await release()
  await until(() => said(server, 'the session store is connected').length === 2)
})
