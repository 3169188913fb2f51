import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import { BrowserSocket } from '../support/browser/browser-socket.ts'
import { ScriptedUpstream } from '../support/upstream/scripted-upstream.ts'
import { ok, rawUpstream } from '../support/upstream/raw-upstream.ts'
import { ready, serverProcess, type ServerProcess } from '../support/server/server-process.ts'
import { ALONE } from '../support/server/settings.ts'
import { until } from '../support/time/until.ts'

const FAULT = new URL('../support/server/fault.ts', import.meta.url)
const withFault = (fault: string) => ({ NODE_OPTIONS: `--import=${fileURLToPath(FAULT)}`, FAULT: fault })

/** A server with one request in flight. Upstream responds to it when `release` is called. */
async function busyServer(
  t: Test,
  settings: Record<string, string> = {},
): Promise<{ server: ServerProcess; response: Promise<Response>; release: () => void }> {
  const upstream = await rawUpstream(t)
  let waiting: Socket | undefined
  upstream.answer = (_request, socket) => void (waiting = socket)
  const server = await serverProcess(t, { ...ALONE, API_URL: upstream.url, ...settings })
  t.ok(await ready(server))
  const arrived = upstream.next()
  const response = fetch(`http://127.0.0.1:${server.port}/api/v1/health`, { headers: { 'x-csrf': '1' } })
  response.catch(() => undefined)
  await arrived
  return { server, response, release: () => waiting?.write(ok('{"status":"fine"}')) }
}

async function unreadyReasons({ opsPort }: ServerProcess): Promise<string[]> {
  const response = await fetch(`http://127.0.0.1:${opsPort}/readyz`)
  return ((await response.json()) as { reasons: string[] }).reasons
}

const firstLogged = (server: ServerProcess, msg: string): Record<string, unknown> | undefined =>
  server
    .output()
    .stdout.split('\n')
    .filter((line) => line.includes(msg))
    .map((line) => JSON.parse(line) as Record<string, unknown>)[0]

for (const [signal, exitCode] of [
  ['SIGTERM', 143],
  ['SIGINT', 130],
  ['SIGHUP', 129],
] as const) {
  await test(`${signal}: /readyz reports draining while requests are still served, and a second signal exits with ${exitCode}`, async (t) => {
    const server = await serverProcess(t, { ...ALONE, DRAIN_SECONDS: '120', DRAIN_WAIT_SECONDS: '60' })
    t.ok(await ready(server))
    const agent = new Agent({ keepAlive: true })
    t.equal((await get(server.port, agent)).connection, 'keep-alive')
    server.child.kill(signal)
    await until(async () => (await unreadyReasons(server)).length > 0)
    t.same(await unreadyReasons(server), ['draining'])
    t.same(await get(server.port, agent), { status: 200, connection: 'close' }, 'the server closes the open connection')
    t.same(await get(server.port, agent), { status: 200, connection: 'close' }, 'the server accepts a new connection')
    server.child.kill(signal)
    t.equal(await server.exited, exitCode)
    agent.destroy()
  })
}

async function get(port: number, agent: Agent): Promise<{ status: number; connection: string }> {
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path: '/auth/session', agent }, (response) => {
      const { statusCode = 0, headers } = response
      response.resume().on('end', () => {
        resolve({ status: statusCode, connection: headers.connection ?? '' })
      })
    })
      .on('error', reject)
      .end()
  })
}

await test('SIGTERM: the request in flight finishes, relays close with 1012, and the exit code is 0', async (t) => {
  const sockets = await ScriptedUpstream.start(t)
  const { server, response, release } = await busyServer(t, {
    WS_URL: `ws://${sockets.host}`,
    DRAIN_WAIT_SECONDS: '1',
  })
  const line = new BrowserSocket(`ws://127.0.0.1:${server.port}/ws/public`, { origin: ALONE.PUBLIC_URL })
  await line.opened()
  server.child.kill('SIGTERM')
  t.same(await line.closed, { code: 1012, reason: 'shutting_down' })
  t.same(await unreadyReasons(server), ['draining'])
  release()
  t.same(await (await response).json(), { status: 'fine' })
  t.equal(await server.exited, 0)
  t.notOk(firstLogged(server, 'not everything ended in time'), 'the keep-alive connection does not delay the exit')
})

await test('SIGTERM: a connection that a browser has opened ahead does not delay the exit', async (t) => {
  const server = await serverProcess(t, { ...ALONE, DRAIN_SECONDS: '10' })
  t.ok(await ready(server))
  const ahead = connect(server.port, '127.0.0.1')
  t.teardown(() => ahead.destroy())
  await once(ahead, 'connect')
  // A response on a later connection shows that the server has accepted this one.
  t.ok((await fetch(`http://127.0.0.1:${server.port}/auth/session`)).ok)
  server.child.kill('SIGTERM')
  t.equal(await server.exited, 0)
  t.notOk(firstLogged(server, 'not everything ended in time'))
})

await test('SIGTERM: a request that takes longer than DRAIN_SECONDS is cut off', async (t) => {
  const { server, response } = await busyServer(t, { DRAIN_SECONDS: '1' })
  server.child.kill('SIGTERM')
  await t.rejects(response)
  t.equal(await server.exited, 0)
  t.match(firstLogged(server, 'not everything ended in time'), { level: 40 })
})

await test('SIGTERM: exit code 0 before the server is ready', async (t) => {
  const server = await serverProcess(t, { ...ALONE, REDIS_URL: 'redis://127.0.0.1:1' })
  await until(async () => (await fetch(`http://127.0.0.1:${server.opsPort}/livez`).catch(() => undefined))?.ok === true)
  t.ok((await unreadyReasons(server)).includes('starting'))
  server.child.kill('SIGTERM')
  t.equal(await server.exited, 0)
  t.equal(server.output().stderr, '')
})

await test('An uncaught error: the request in flight finishes, and the exit code is 1', async (t) => {
  const { server, response, release } = await busyServer(t, { ...withFault('throw'), DRAIN_WAIT_SECONDS: '10' })
  server.child.kill('SIGUSR2')
  // The server does not wait for a balancer: it refuses new connections at once.
  await until(() =>
    fetch(`http://127.0.0.1:${server.port}/auth/session`).then(
      () => false,
      () => true,
    ),
  )
  release()
  t.equal((await response).status, 200)
  t.equal(await server.exited, 1)
  t.match(firstLogged(server, 'an unexpected error'), { level: 60, err: { message: 'a planted error' } })
  t.notOk(firstLogged(server, 'not everything ended in time'))
})

await test('A second uncaught error: the process exits with 1 at once', async (t) => {
  const { server, response } = await busyServer(t, withFault('twice'))
  server.child.kill('SIGUSR2')
  await t.rejects(response)
  t.equal(await server.exited, 1)
  t.notOk(firstLogged(server, 'not everything ended in time'))
})
