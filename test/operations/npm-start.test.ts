import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { ALONE } from '../support/server/settings.ts'
import { until, within } from '../support/time/until.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const isThere = (opsPort: string): Promise<boolean> =>
  fetch(`http://127.0.0.1:${opsPort}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  )

await test('npm start: a SIGTERM that only npm gets drains the server, and leaves no process behind', async (t) => {
  const [PORT, OPS_PORT] = [String(await freePort()), String(await freePort())]
  // As in a user's shell: without the options of the test runner, and with the machine's own Node.js, which may be older.
  const { PATH = '', HOME } = process.env
  const path = PATH.split(':').filter((folder) => !folder.includes('node_modules'))
  const npm = spawn('npm', ['start'], {
    cwd: ROOT,
    env: { PATH: path.join(':'), HOME, ...ALONE, HOST: '127.0.0.1', PORT, OPS_PORT },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  let output = ''
  for (const stream of [npm.stdout, npm.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  t.teardown(() => {
    try {
      process.kill(-(npm.pid ?? 0), 'SIGKILL')
    } catch {
      // The whole group has ended.
    }
  })
  const exited = once(npm, 'exit')
  await until(() => isThere(OPS_PORT), 'the server is ready', 30_000)
  npm.kill('SIGTERM')
  t.same(await within(exited, 'npm ends', 30_000), [0, null])
  t.match(output, /"msg":"draining"/)
  t.notOk(await isThere(OPS_PORT))
})
