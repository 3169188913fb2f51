import { fileURLToPath } from 'node:url'
import { parseEnv } from 'node:util'
import { test, type Test } from 'tap'
import { freePort } from '../sandbox/listening.ts'
import { JarBrowser } from './support/browser/jar-browser.ts'
import { runCommand, type RunningCommand } from './support/sandbox/command.ts'
import { takenPort } from './support/server/http-server.ts'
import { until, within } from './support/time/until.ts'
import { logIn } from './support/parts.ts'
import { testServer } from './support/server/test-server.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Runs `npm run sandbox` with these environment variables. */
function runSandbox(t: Test, env: Record<string, string>): RunningCommand {
  // As in a user's shell: without the options of the test runner, and with the machine's own Node.js, which may be older.
  const { PATH = '', HOME } = process.env
  const path = PATH.split(':').filter((folder) => !folder.includes('node_modules'))
  const options = { cwd: ROOT, env: { PATH: path.join(':'), HOME, ...env } }
  return runCommand(t, ['npm', 'run', '--silent', 'sandbox'], options)
}

await test('npm run sandbox prints the .env of a server where users log in, and stops on SIGINT', async (t) => {
  const [port, PROVIDER_PORT, UPSTREAM_PORT] = [await freePort(), String(await freePort()), String(await freePort())]
  const publicUrl = `http://localhost:${port}`
  const sandbox = runSandbox(t, { PUBLIC_URL: publicUrl, PROVIDER_PORT, UPSTREAM_PORT })
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

await test('npm run sandbox: exit code 1 names the port that is taken', async (t) => {
  const port = await takenPort(t)
  const { exited, output } = runSandbox(t, { PROVIDER_PORT: String(await freePort()), UPSTREAM_PORT: String(port) })
  t.equal(await exited, 1)
  const stderr = `Port ${port} is taken. Stop what uses it, or choose another: UPSTREAM_PORT=… npm run sandbox\n`
  t.same(output, { stdout: '', stderr })
})
