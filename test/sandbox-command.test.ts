import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseEnv } from 'node:util'
import { test } from 'tap'
import { freePort } from '../sandbox/listening.ts'
import { JarBrowser } from './support/browser/jar-browser.ts'
import { runCommand, runNpm } from './support/sandbox/command.ts'
import { takenPort } from './support/server/http-server.ts'
import { COMPILED } from './support/server/settings.ts'
import { until, within } from './support/time/until.ts'
import { logIn } from './support/parts.ts'
import { testServer } from './support/server/test-server.ts'

await test('npm run sandbox prints the .env of a server where users log in, and stops on SIGINT', async (t) => {
  const [port, PROVIDER_PORT, UPSTREAM_PORT] = [await freePort(), String(await freePort()), String(await freePort())]
  const publicUrl = `http://localhost:${port}`
  const sandbox = runNpm(t, ['sandbox'], { PUBLIC_URL: publicUrl, PROVIDER_PORT, UPSTREAM_PORT })
  await until(() => sandbox.output.stdout.includes('PARTNER_OVERVIEW_PATH') || sandbox.output.stderr !== '')
  t.equal(sandbox.output.stderr, '')

  const settings = parseEnv(sandbox.output.stdout) as Record<string, string>
  t.equal(settings['PUBLIC_URL'], publicUrl)
  const server = await testServer(t, { ...settings, PORT: String(port) })
  const browser = new JarBrowser()
  await logIn(browser, server.url, 'new@example.test')
  const accounts = await browser.fetch('/api/trading/v1/options/accounts', { headers: { 'x-csrf': '1' } })
  t.equal(accounts.status, 200)

  sandbox.signal('SIGINT')
  await within(sandbox.exited, 'npm run sandbox stops')
  await t.rejects(fetch(`http://127.0.0.1:${PROVIDER_PORT}`), 'the provider has stopped')
  await t.rejects(fetch(`http://127.0.0.1:${UPSTREAM_PORT}`), 'the trading service has stopped')
})

await test('npm run sandbox and npm run demo: exit code 1 names all ports that are taken, and a command that starts', async (t) => {
  const taken = [await takenPort(t), await takenPort(t)].map(String) as [string, string]
  const free = [await freePort(), await freePort()].map(String) as [string, string]
  for (const [script, env] of [
    ['sandbox', { PROVIDER_PORT: free[0], UPSTREAM_PORT: taken[0] }],
    ['sandbox -- --write-env', { PROVIDER_PORT: taken[0], UPSTREAM_PORT: taken[1] }],
    ['demo', { PORT: free[0], OPS_PORT: taken[0], PROVIDER_PORT: taken[1], UPSTREAM_PORT: free[1] }],
  ] as const) {
    const { exited, output } = runNpm(t, script.split(' '), env)
    t.equal(await exited, 1)
    t.equal(output.stdout, '')
    const inUse = Object.values(env).filter((port) => taken.includes(port))
    const ports = inUse.map((port) => `port ${port} is taken`).join(', ')
    const [, sentence, command = ''] = /^(.*): (.*)\n$/.exec(output.stderr) ?? []
    const advice = inUse.length === 1 ? 'it, or choose another' : 'them, or choose others'
    t.equal(sentence, `P${ports.slice(1)}. Stop what uses ${advice}`)
    t.ok(command.endsWith(` npm run ${script}`), command)
    const chosen = parseEnv(command.replaceAll(' ', '\n')) as Record<string, string>
    for (const [name, port] of Object.entries(env)) t.equal(chosen[name] === port, !taken.includes(port), name)
    if (script !== 'sandbox') continue
    const second = runNpm(t, ['sandbox'], chosen)
    await until(() => second.output.stdout.includes('The sandbox is running') || second.output.stderr !== '')
    t.equal(second.output.stderr, '')
    second.signal('SIGINT')
    await within(second.exited, 'npm run sandbox stops')
  }
})

const SERVE = fileURLToPath(new URL('../sandbox/serve.ts', import.meta.url))

await test('npm run sandbox -- --write-env writes what it would print into .env, and never over one', async (t) => {
  const cwd = t.testdir({})
  const ports = { PROVIDER_PORT: String(await freePort()), UPSTREAM_PORT: String(await freePort()) }
  const run = (...args: string[]) =>
    runCommand(t, [process.execPath, SERVE, ...args], {
      cwd,
      env: { ...COMPILED, PUBLIC_URL: 'http://localhost:5173', ...ports },
    })
  const sandbox = run('--write-env')
  await until(() => sandbox.output.stdout.includes('npm run dev') || sandbox.output.stderr !== '')
  t.notMatch(sandbox.output.stdout, /=/, 'nothing to copy')
  const written = await readFile(join(cwd, '.env'), 'utf8')
  sandbox.signal('SIGINT')
  await sandbox.exited

  const printing = run()
  await until(() => printing.output.stdout.includes('HOST=') || printing.output.stderr !== '')
  t.same(parseEnv(printing.output.stdout), parseEnv(written))
  t.match(parseEnv(written), {
    PUBLIC_URL: 'http://localhost:5173',
    AUTH_URL: `http://127.0.0.1:${ports.PROVIDER_PORT}`,
  })
  printing.signal('SIGINT')
  await printing.exited

  const again = run('--write-env')
  t.equal(await again.exited, 1)
  t.same(again.output, {
    stdout: '',
    stderr: 'There is a .env already. Move it away first, or start without --write-env\n',
  })
  t.equal(await readFile(join(cwd, '.env'), 'utf8'), written)
})
