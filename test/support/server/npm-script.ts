import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { freePort } from '../../../sandbox/listening.ts'
import { until, within } from '../time/until.ts'
import { COMPILED } from './settings.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** A script that runs until it is stopped, its settings, and the names of those of its ports. */
type Script = readonly [name: string, settings: NodeJS.ProcessEnv, ports: readonly string[]]

const responds = (port: string): Promise<boolean> =>
  fetch(`http://127.0.0.1:${port}/livez`).then(
    () => true,
    () => false,
  )

/** A process manager signals npm alone, a terminal all processes. npm passes both on. */
const SIGNALS = [
  ['SIGTERM', 'only npm gets'],
  ['SIGINT', 'all processes get'],
] as const

/** Tests that a signal stops everything that a script of package.json has started. */
export async function testStops([name, settings, portNames]: Script): Promise<void> {
  for (const [signal, who] of SIGNALS) {
    await test(`npm run ${name}: a ${signal} that ${who} stops everything, and leaves no process behind`, async (t) => {
      const ports: Record<string, string> = {}
      for (const portName of portNames) ports[portName] = String(await freePort())
      // As in a user's shell: without the options of the test runner, and with the machine's own Node.js, which may be older.
      const { PATH = '', HOME } = process.env
      const path = PATH.split(':').filter((folder) => !folder.includes('node_modules'))
      const npm = spawn('npm', ['run', name], {
        cwd: ROOT,
        env: { ...COMPILED, PATH: path.join(':'), HOME, TMPDIR: t.testdir({}), ...settings, ...ports },
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
      for (const port of Object.values(ports)) await until(() => responds(port), `${name} listens on ${port}`, 30_000)
      process.kill(signal === 'SIGINT' ? -(npm.pid ?? 0) : (npm.pid ?? 0), signal)
      const end = String(await within(exited, 'npm ends', 30_000))
      // Where npm passes the signal on to a server that is ending, Node may have given its handlers up.
      t.ok(end === '0,' || (signal === 'SIGINT' && end === `,${signal}`), `${end}: ${output}`)
      for (const port of Object.values(ports)) t.notOk(await responds(port), `nothing listens on ${port} any more`)
      // A signal that the group has got, and npm has passed on, counts once (docs/operating/rotation-and-upgrades.md).
      if (name === 'start') {
        t.match(output, /"msg":"draining"/)
        t.notMatch(output, /"msg":"exiting now"/)
      }
    })
  }
}
