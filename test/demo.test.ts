import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import { MessageSocket } from './support/browser/message-socket.ts'
import { JarBrowser } from './support/browser/jar-browser.ts'
import { freePort } from '../sandbox/listening.ts'
import { scanLog } from './support/telemetry/log-scan.ts'
import { COMPILED, nodeCommand } from './support/server/settings.ts'
import { logIn } from './support/server/world.ts'

const DEMO = fileURLToPath(new URL('../sandbox/demo.ts', import.meta.url))

/** Starts the demo with free ports and these environment variables. Teardown kills it. */
async function startDemo(t: Test, env: Record<string, string> = {}) {
  const names = ['PORT', 'OPS_PORT', 'PROVIDER_PORT', 'UPSTREAM_PORT']
  const ports: Record<string, string> = {}
  for (const name of names) ports[name] = String(await freePort())
  const [command, ...words] = nodeCommand()
  const child = spawn(command, [...words, DEMO], {
    env: { ...COMPILED, PATH: process.env['PATH'], ...ports, ...env },
  })
  t.teardown(() => {
    child.kill('SIGKILL')
    scanLog(t, stdout + stderr)
  })
  let stdout = ''
  let stderr = ''
  const printed = new Promise<void>((resolve) => {
    child.stdout.on('data', (chunk: Buffer) => {
      stdout += chunk.toString()
      if (stdout.includes('\n')) resolve()
    })
  })
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const exited = once(child, 'close').then(([code]: unknown[]) => code)
  return { child, ports: { ...ports, ...env }, printed, exited, output: () => ({ stdout, stderr }) }
}

await test('npm run demo prints its address, lets a user log in, and stops everything on SIGINT', async (t) => {
  const { child, ports, printed, exited, output } = await startDemo(t)
  await printed
  const url = `http://localhost:${ports['PORT']}`
  t.match(output().stdout, new RegExp(`^Open ${url} \\(sessions in Redis; .*\\)\n$`))
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
  child.kill('SIGINT')
  t.equal(await exited, 0)
  for (const port of Object.values(ports)) {
    await t.rejects(fetch(`http://127.0.0.1:${port}`), `nothing listens on port ${port} any more`)
  }
  t.equal(output().stderr, '')
})

await test('npm run demo keeps sessions in memory without redis-server, and says so', async (t) => {
  const { printed, output, child, exited } = await startDemo(t, { PATH: '/nonexistent' })
  await printed
  t.match(output().stdout, /sessions in memory/)
  child.kill('SIGTERM')
  t.equal(await exited, 0)
})

await test('npm run demo: exit code 1 names the port that is taken', async (t) => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  const { port } = other.address() as { port: number }
  const { exited, output } = await startDemo(t, { UPSTREAM_PORT: String(port) })
  t.equal(await exited, 1)
  const stderr = `Port ${port} is taken. Stop what uses it, or choose another: UPSTREAM_PORT=… npm run demo\n`
  t.same(output(), { stdout: '', stderr }, 'and prints nothing else, such as a warning of Node.js')
})
