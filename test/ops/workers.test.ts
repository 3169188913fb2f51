import { test } from 'tap'
import { BrowserSocket } from '../support/browser/browser-socket.ts'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import type { ServerProcess } from '../support/server/server-process.ts'
import { said, status, twoWorkers, workerPids } from '../support/server/two-workers.ts'
import { logIn } from '../support/parts.ts'
import { startParts } from '../support/world.ts'
import { until, untilSlow } from '../support/time/until.ts'
import { exactly } from '../support/exactly.ts'

async function metrics({ opsPort }: ServerProcess): Promise<string> {
  return (await fetch(`http://127.0.0.1:${opsPort}/metrics`)).text()
}

/** The number of requests on a route that all workers have counted. */
async function counted(server: ServerProcess, route: string): Promise<number> {
  const line = new RegExp(`^bff_http_request_duration_seconds_count{.*route="${route}".*} (\\d+)$`, 'm')
  return Number(line.exec(await metrics(server))?.[1] ?? 0)
}

await test('Two workers act as one server: one port, shared sessions and secrets, aggregated metrics', async (t) => {
  const { settings, port, publicUrl } = await startParts(t)
  const server = await twoWorkers(t, { ...settings, PORT: String(port), SESSION_SECRETS: '' })
  // SESSION_SECRETS is not set, so both workers share the random secrets of their supervisor.
  const browser = new JarBrowser()
  await logIn(browser, publicUrl)
  const cookie = browser.cookieHeader(new URL(publicUrl), new URL(publicUrl))
  const accounts = '/api/trading/v1/options/accounts'
  for (let times = 0; times < 8; times++) {
    t.equal(await status(port, accounts, { cookie, 'x-csrf': '1' }), 200)
  }
  const lines = () => said(server, 'request').filter(({ route }) => route === accounts)
  await until(() => lines().length === 8)
  t.same(new Set(lines().map(({ worker }) => worker)), new Set([1, 2]), 'both workers served and logged requests')
  t.equal(await counted(server, accounts), 8)
  const text = await metrics(server)
  t.match(text, /^bff_workers 2$/m)
  t.match(text, /^bff_session_store_up 1$/m, 'flags are not added up')

  const sockets = [1, 2, 3, 4].map(() => new BrowserSocket(`ws://127.0.0.1:${port}/ws/public`, { origin: publicUrl }))
  await Promise.all(sockets.map((socket) => socket.opened()))
  t.match(await metrics(server), /^bff_relays{kind="public"} 4$/m)
  server.child.kill('SIGTERM')
  for (const socket of sockets) t.same(await socket.closed, { code: 1012, reason: 'shutting_down' })
  t.equal(await server.exited, 0)
})

await test('A worker that dies is replaced, its counts stay in the metrics, and its gauges do not', async (t) => {
  const server = await twoWorkers(t, { MAX_RELAYS: '10' })
  for (let times = 0; times < 4; times++) await status(server.port, '/auth/session')
  t.equal(await counted(server, '/auth/session'), 4)
  const [victim = 0, next = 0] = workerPids(server)
  process.kill(victim, 'SIGKILL')
  await untilSlow(() => said(server, 'ready').length === 3)
  t.match(said(server, 'a worker died'), exactly({ worker: 1, signal: 'SIGKILL', restartMs: 200 }))
  for (let times = 0; times < 4; times++) t.equal(await status(server.port, '/auth/session'), 200)
  t.equal(await counted(server, '/auth/session'), 8)
  const text = await metrics(server)
  t.match(text, /^bff_worker_restarts_total 1$/m)
  t.match(text, /^bff_relay_limit 20$/m, 'those of two workers')
  process.kill(next, 'SIGKILL')
  await untilSlow(() => said(server, 'ready').length === 4)
  t.equal(await counted(server, '/auth/session'), 8, 'the counts of both that died')
})
