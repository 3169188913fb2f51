import { once } from 'node:events'
import { Agent, request } from 'node:http'
import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import { BrowserSocket as BrowserLine } from '../support/browser-socket.ts'
import { ScriptedUpstream as LineUpstream } from '../support/scripted-upstream.ts'
import { ok, rawUpstream } from '../support/raw-upstream.ts'
import { ready, serverProcess, type ServerProcess } from '../support/server-process.ts'
import { ALONE } from '../support/settings.ts'
import { until } from '../support/until.ts'

const FAULT = new URL('../support/fault.ts', import.meta.url)
const withFault = (fault: string) => ({ NODE_OPTIONS: `--import=${fileURLToPath(FAULT)}`, FAULT: fault })

/** A server with one request in flight, which upstream answers when told to. */
async function busyServer(
  t: Test,
  settings: Record<string, string> = {},
): Promise<{ server: ServerProcess; answer: Promise<Response>; release: () => void }> {
  const upstream = await rawUpstream(t)
  let waiting: Socket | undefined
  upstream.answer = (_request, socket) => void (waiting = socket)
  const server = await serverProcess(t, { ...ALONE, API_URL: upstream.url, ...settings })
  t.ok(await ready(server))
  const arrived = upstream.next()
  const answer = fetch(`http://127.0.0.1:${server.port}/api/v1/health`, { headers: { 'x-csrf': '1' } })
  answer.catch(() => undefined)
  await arrived
  return { server, answer, release: () => waiting?.write(ok('{"status":"fine"}')) }
}

async function unreadyReasons({ opsPort }: ServerProcess): Promise<string[]> {
  const answer = await fetch(`http://127.0.0.1:${opsPort}/readyz`)
  return ((await answer.json()) as { reasons: string[] }).reasons
}

const logged = (server: ServerProcess, msg: string): Record<string, unknown> | undefined =>
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
  await test(`after ${signal} it is not ready but serves on, and a second one ends it now`, async (t) => {
    const server = await serverProcess(t, { ...ALONE, DRAIN_SECONDS: '120', DRAIN_WAIT_SECONDS: '60' })
    t.ok(await ready(server))
    const agent = new Agent({ keepAlive: true })
    t.equal((await get(server.port, agent)).connection, 'keep-alive')
    server.child.kill(signal)
    await until(async () => (await unreadyReasons(server)).length > 0)
    t.same(await unreadyReasons(server), ['draining'])
    t.same(await get(server.port, agent), { status: 200, connection: 'close' }, 'its last on this connection')
    t.same(await get(server.port, agent), { status: 200, connection: 'close' }, 'and a new one is taken too')
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

await test('what is in flight is finished, relays are told to come back, and it ends with 0', async (t) => {
  const sockets = await LineUpstream.start(t)
  const { server, answer, release } = await busyServer(t, {
    WS_URL: `ws://${sockets.host}`,
    DRAIN_WAIT_SECONDS: '1',
  })
  const line = new BrowserLine(`ws://127.0.0.1:${server.port}/ws/public`, { origin: ALONE.PUBLIC_URL })
  await line.opened()
  server.child.kill('SIGTERM')
  t.same(await line.closed, { code: 1012, reason: 'shutting_down' })
  t.same(await unreadyReasons(server), ['draining'])
  release()
  t.same(await (await answer).json(), { status: 'fine' })
  t.equal(await server.exited, 0)
  t.notOk(logged(server, 'not everything ended in time'), 'though the connection was kept alive')
})

await test('what takes longer than DRAIN_SECONDS is cut off', async (t) => {
  const { server, answer } = await busyServer(t, { DRAIN_SECONDS: '1' })
  server.child.kill('SIGTERM')
  await t.rejects(answer)
  t.equal(await server.exited, 0)
  t.match(logged(server, 'not everything ended in time'), { level: 40 })
})

await test('a signal before it is ready ends it with 0', async (t) => {
  const server = await serverProcess(t, { ...ALONE, REDIS_URL: 'redis://127.0.0.1:1' })
  await until(
    async () => (await fetch(`http://127.0.0.1:${server.opsPort}/livez`).catch(() => undefined))?.ok === true,
  )
  t.ok((await unreadyReasons(server)).includes('starting'))
  server.child.kill('SIGTERM')
  t.equal(await server.exited, 0)
  t.equal(server.output().stderr, '')
})

for (const [fault, message] of [
  ['throw', 'a planted error'],
  ['reject', 'a planted rejection'],
] as const) {
  await test(`after an error that nobody caught (${fault}) it finishes what is in flight and ends with 1`, async (t) => {
    const { server, answer, release } = await busyServer(t, { ...withFault(fault), DRAIN_WAIT_SECONDS: '10' })
    server.child.kill('SIGUSR2')
    // It waits for no balancer: it takes nothing more.
    await until(() =>
      fetch(`http://127.0.0.1:${server.port}/auth/session`).then(
        () => false,
        () => true,
      ),
    )
    release()
    t.equal((await answer).status, 200)
    t.equal(await server.exited, 1)
    t.match(logged(server, 'an unexpected error'), { level: 60, err: { message } })
    t.notOk(logged(server, 'not everything ended in time'))
  })
}

await test('a second such error ends it now', async (t) => {
  const { server, answer } = await busyServer(t, withFault('twice'))
  server.child.kill('SIGUSR2')
  await t.rejects(answer)
  t.equal(await server.exited, 1)
  t.notOk(logged(server, 'not everything ended in time'))
})

await test('a reader of the log that hangs keeps nobody from ending it', async (t) => {
  const server = await serverProcess(t, { ...ALONE, LOG_LEVEL: 'trace' })
  t.ok(await ready(server))
  server.child.stdout?.pause()
  const line = `/${'x'.repeat(64)}`
  // More lines than the pipe and this process's own buffers take.
  for (let asked = 0; asked < 2500; asked += 50) {
    const fifty = Array.from({ length: 50 }, () => fetch(`http://127.0.0.1:${server.port}${line}`))
    for (const answer of await Promise.all(fifty)) await answer.text()
  }
  server.child.kill('SIGTERM')
  const [, signal] = (await once(server.child, 'exit')) as [number | null, string | null]
  t.equal(signal, 'SIGKILL', 'by its own hand')
  server.child.stdout?.resume()
})
