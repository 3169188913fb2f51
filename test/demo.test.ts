import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import { JarBrowser } from './support/jar-browser.ts'
import { freePort } from '../sandbox/listening.ts'
import { scanLog } from './support/log-scan.ts'
import { logIn } from './support/world.ts'

const DEMO = fileURLToPath(new URL('../sandbox/demo.ts', import.meta.url))

async function demo(t: Test, more: Record<string, string> = {}) {
  const names = ['PORT', 'OPS_PORT', 'PROVIDER_PORT', 'UPSTREAM_PORT']
  const ports: Record<string, string> = {}
  for (const name of names) ports[name] = String(await freePort())
  const child = spawn(process.execPath, [DEMO], { env: { PATH: process.env['PATH'], ...ports, ...more } })
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
  return { child, ports: { ...ports, ...more }, printed, exited, output: () => ({ stdout, stderr }) }
}

await test('the demo says in one line where to go, works, and stops everything on Ctrl-C', async (t) => {
  const { child, ports, printed, exited, output } = await demo(t)
  await printed
  const url = `http://localhost:${ports['PORT']}`
  t.match(output().stdout, new RegExp(`^Open ${url} \\(sessions in Redis; .*\\)\n$`))
  const browser = new JarBrowser()
  await logIn(browser, url)
  t.match(await (await browser.fetch('/auth/session')).json(), { authenticated: true })
  t.match(await (await fetch(url)).text(), /Trading BFF demo/)
  child.kill('SIGINT')
  t.equal(await exited, 0)
  for (const port of Object.values(ports)) {
    await t.rejects(fetch(`http://127.0.0.1:${port}`), `nothing answers on port ${port} any more`)
  }
  t.equal(output().stderr, '')
})

await test('without redis-server the demo says that sessions are in memory', async (t) => {
  const { printed, output, child, exited } = await demo(t, { PATH: '/nonexistent' })
  await printed
  t.match(output().stdout, /sessions in memory/)
  child.kill('SIGTERM')
  t.equal(await exited, 0)
})

await test('the demo says which port is taken, and starts nothing', async (t) => {
  const holder = createServer().listen(0, '127.0.0.1')
  await once(holder, 'listening')
  t.teardown(() => holder.close())
  const { port } = holder.address() as { port: number }
  const { exited, output } = await demo(t, { UPSTREAM_PORT: String(port) })
  t.equal(await exited, 1)
  t.match(output().stderr, `Port ${port} is taken. Stop what uses it, or choose another: UPSTREAM_PORT=`)
})
