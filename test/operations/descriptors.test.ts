import { once } from 'node:events'
import { Agent, request, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { test, type Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { startRedis } from '../../sandbox/redis-process.ts'
import { BrowserSocket as BrowserLine } from '../support/browser-socket.ts'
import { ScriptedUpstream as LineUpstream } from '../support/scripted-upstream.ts'
import { rawUpstream } from '../support/raw-upstream.ts'
import { ready, serverProcess, type ServerProcess } from '../support/server-process.ts'
import { ALONE } from '../support/settings.ts'
import { failureCount as toldOf } from '../support/failure-count.ts'
import { said } from '../support/two-workers.ts'
import { until } from '../support/until.ts'

/** Enough for a start, and soon used up. */
const FEW = 128
const LOOPBACK = '127.0.0.1'
const NO_DESCRIPTOR =
  'no file descriptor is left: raise the limit of open files of this process (LimitNOFILE, ulimit -n), or lower MAX_RELAYS'

/** Lines that say that somebody else is at fault. */
function blames(server: ServerProcess): string[] {
  const lines = server.output().stdout.split('\n').slice(0, -1)
  return lines.filter(
    (line) => /"level":[456]0/.test(line) && !/"audit"|file descriptor|files open|is not set/.test(line),
  )
}

/** Connections that say nothing, always more than the server has descriptors for. @returns what ends them */
async function useUp(t: Test, { port }: ServerProcess): Promise<() => Promise<void>> {
  const open = new Set<Socket>()
  const over = new AbortController()
  const refused = Promise.withResolvers<void>()
  const one = (): void => {
    if (over.signal.aborted) return
    const socket = connect(port, '127.0.0.1').on('error', () => undefined)
    open.add(socket)
    socket.on('close', () => {
      open.delete(socket)
      // Those that the server cannot take are hung up on.
      refused.resolve()
      setTimeout(one, 20)
    })
  }
  for (let opened = 0; opened < FEW + 20; opened++) one()
  t.teardown(() => over.abort())
  await refused.promise
  return async () => {
    over.abort()
    for (const socket of open) socket.destroy()
    await until(() => open.size === 0)
  }
}

/** A browser whose connection is open already. */
function browserOf(t: Test, port: number): (path: string, cookie?: string) => Promise<Answer> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  return async (path, cookie = '') => {
    const headers = { 'x-csrf': '1', cookie }
    const sent = request({ host: '127.0.0.1', port, path, agent, headers }).end()
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    return { status: response.statusCode ?? 0, headers: response.headers, body: await text(response) }
  }
}

interface Answer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

await test('a limit of open files that is less than MAX_RELAYS needs is told of at the start', async (t) => {
  const warned = async (descriptors: number, maxRelays: string): Promise<unknown[]> => {
    const server = await serverProcess(t, { ...ALONE, MAX_RELAYS: maxRelays }, { descriptors })
    t.ok(await ready(server))
    const lines = server.output().stdout.split('\n').slice(0, -1)
    server.child.kill('SIGTERM')
    await server.exited
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
  await test(`no descriptor is left for upstream at ${host}: it is ours, nothing was sent, and it goes on`, async (t) => {
    const upstream = await rawUpstream(t)
    const sockets = await LineUpstream.start(t)
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
    const ask = browserOf(t, server.port)
    t.equal((await ask('/auth/session')).status, 200)
    const browser = connect(server.port, '127.0.0.1')
    await once(browser, 'connect')
    const login = await ask('/auth/login')
    const state = new URL(login.headers.location ?? '').searchParams.get('state')
    const release = await useUp(t, server)

    const call = await ask('/api/v1/health')
    t.equal(call.status, 502)
    t.match(JSON.parse(call.body), { code: 'upstream_unreachable' })
    t.equal(upstream.requests.length, 0)
    const callback = await ask(
      `/auth/callback?code=x&state=${state}`,
      login.headers['set-cookie']?.[0]?.split(';')[0],
    )
    t.match(callback.headers.location, 'auth_error=provider_unavailable')
    const handshake = `GET /ws/public HTTP/1.1\r\nHost: h\r\nOrigin: ${ALONE.PUBLIC_URL}\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${Buffer.alloc(16).toString('base64')}\r\n\r\n`
    browser.write(handshake)
    let heard = ''
    browser.on('data', (chunk: Buffer) => (heard += chunk.toString('latin1')))
    await until(() => /^HTTP\/1\.1 101 [^]*upstream_unreachable/.test(heard), 'a page can read why')
    await until(
      () => toldOf(said(server, NO_DESCRIPTOR), NO_DESCRIPTOR) === 3,
      'upstream, the provider, and a socket',
    )
    t.equal(said(server, NO_DESCRIPTOR)[0]?.['level'], 50)
    t.same(blames(server), [], 'nobody else is blamed')

    await release()
    await until(async () => (await ask('/api/v1/health')).status === 200, 'it reaches upstream again')
    const metrics = await (await fetch(`http://127.0.0.1:${server.opsPort}/metrics`)).text()
    t.match(metrics, /outcome="no_descriptor"\} [1-9]/)
    t.notMatch(metrics, /outcome="unreachable"/)
    const line = new BrowserLine(`ws://127.0.0.1:${server.port}/ws/public`, { origin: ALONE.PUBLIC_URL })
    await line.opened()
    line.socket.terminate()
    browser.destroy()
    server.child.kill('SIGTERM')
    t.equal(await server.exited, 0)
  })
}

await test('no descriptor is left to come back to Redis: it is ours, and it comes back when there are', async (t) => {
  const port = await freePort()
  const first = await startRedis([], port)
  t.teardown(() => first.close())
  const server = await serverProcess(
    t,
    { ...ALONE, REDIS_URL: `redis://localhost:${port}` },
    { descriptors: FEW },
  )
  t.ok(await ready(server))
  const release = await useUp(t, server)
  await first.close()
  await until(() => said(server, NO_DESCRIPTOR).length > 0)
  t.equal(said(server, NO_DESCRIPTOR)[0]?.['level'], 50)
  const second = await startRedis([], port)
  t.teardown(() => second.close())
  await release()
  await until(() => said(server, 'the session store is connected').length === 2)
})
