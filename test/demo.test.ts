import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import { MessageSocket } from './support/browser/message-socket.ts'
import { JarBrowser } from './support/browser/jar-browser.ts'
import { freePort } from '../sandbox/listening.ts'
import { runCommand, type RunningCommand } from './support/sandbox/command.ts'
import { takenPort } from './support/server/http-server.ts'
import { scanLog } from './support/telemetry/log-scan.ts'
import { COMPILED, nodeCommand } from './support/server/settings.ts'
import { logIn } from './support/parts.ts'
import { until } from './support/time/until.ts'

const DEMO = fileURLToPath(new URL('../sandbox/demo.ts', import.meta.url))

/** Starts the demo with free ports and these environment variables. */
async function startDemo(t: Test, env: Record<string, string> = {}) {
  const ports: Record<string, string> = {}
  for (const name of ['PORT', 'OPS_PORT', 'PROVIDER_PORT', 'UPSTREAM_PORT']) ports[name] = String(await freePort())
  const all = { ...COMPILED, PATH: process.env['PATH'], ...ports, ...env }
  const demo = runCommand(t, [...nodeCommand(), DEMO], { env: all })
  t.teardown(() => scanLog(t, demo.output.stdout + demo.output.stderr))
  return { ...demo, ports: { ...ports, ...env } }
}

const hasPrinted = ({ output }: RunningCommand): Promise<void> =>
  until(() => output.stdout.includes('\n'), 'the demo prints its address', 30_000)

await test('npm run demo prints its address, lets a user log in, and stops everything on SIGINT', async (t) => {
  const demo = await startDemo(t)
  const { ports, output } = demo
  await hasPrinted(demo)
  const url = `http://localhost:${ports['PORT']}`
  t.match(output.stdout, new RegExp(`^Open ${url} \\(sessions in Redis; .*\\)\n$`))
  const browser = new JarBrowser()
  await logIn(browser, url)
  t.match(await (await browser.fetch('/auth/session')).json(), { authenticated: true })
  t.match(await (await fetch(url)).text(), /Trading BFF demo/)
  const sockets = await Promise.all(
    [1, 2].map(() => MessageSocket.connect(`${url.replace('http', 'ws')}/ws/public`, url)),
  )
  for (const socket of sockets) await socket.ask({ ticks: 'R_100', subscribe: 1 })
  t.match(
    await sockets[0]?.ask({ sandbox_sharing: 1 }),
    { sandbox_sharing: { browsers: 2, sockets: 1, streams: 1, ownSockets: 1 } },
    'what the browsers share, for the Inspect card',
  )
  for (const { socket } of sockets) socket.close()
  demo.signal('SIGINT')
  t.equal(await demo.exited, 0)
  for (const port of Object.values(ports)) {
    await t.rejects(fetch(`http://127.0.0.1:${port}`), `nothing listens on port ${port} any more`)
  }
  t.equal(output.stderr, '')
})

await test('npm run demo keeps sessions in memory without redis-server, relays where PUBLIC_FEED says so, and says both', async (t) => {
  const demo = await startDemo(t, { PATH: '/nonexistent', PUBLIC_FEED: 'relay' })
  await hasPrinted(demo)
  t.match(demo.output.stdout, /sessions in memory.*; relay feed; /)
  demo.signal('SIGTERM')
  t.equal(await demo.exited, 0)
})

await test('npm run demo: exit code 1 names the port that is taken', async (t) => {
  const port = await takenPort(t)
  const { exited, output } = await startDemo(t, { UPSTREAM_PORT: String(port) })
  t.equal(await exited, 1)
  const stderr = new RegExp(
    `^Port ${port} is taken\\. Stop what uses it, or choose another: .*UPSTREAM_PORT=\\d+ npm run demo\n$`,
  )
  t.match(output, { stdout: /^$/, stderr }, 'and prints nothing else, such as a warning of Node.js')
})
