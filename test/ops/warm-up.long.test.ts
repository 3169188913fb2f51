import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { ready, serverProcess } from '../support/server/server-process.ts'
import { ALONE } from '../support/server/settings.ts'
import { testRedis } from '../support/server/test-server.ts'

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

/** Names of the files in a compile cache. */
const filesIn = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)
    .sort()

await test('--warm-up compiles everything that a start needs and opens no socket', async (t) => {
  const dir = t.testdir({})
  // This module exits the process as soon as it opens a socket.
  const noSockets = `data:text/javascript,${encodeURIComponent(`
    import net from 'node:net'
    import dns from 'node:dns'
    import { syncBuiltinESMExports } from 'node:module'
    const refuse = () => { process.stderr.write(new Error('a socket').stack); process.exit(99) }
    net.Server.prototype.listen = net.Socket.prototype.connect = dns.lookup = refuse
    syncBuiltinESMExports()`)}`
  const env = { NODE_COMPILE_CACHE: dir }
  const options = { env, encoding: 'utf8', cwd: t.testdirName } as const
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', noSockets, MAIN, '--warm-up'], options)
  t.same([status, stdout, stderr], [0, '', ''])
  const compiled = filesIn(dir)
  t.ok(compiled.length > 300, `${compiled.length} files`)

  const redis = await testRedis(t)
  for (const workers of ['1', '2']) {
    const server = await serverProcess(t, { ...ALONE, ...env, REDIS_URL: redis.url, WORKERS: workers })
    t.ok(await ready(server))
    t.equal((await fetch(`http://127.0.0.1:${server.port}/auth/session`)).status, 200)
    server.child.kill('SIGTERM')
    t.equal(await server.exited, 0)
    t.same(
      filesIn(dir).filter((name) => !compiled.includes(name)),
      [],
      `a start with WORKERS=${workers} compiles nothing`,
    )
  }
})

await test('--warm-up: exit code 78 without NODE_COMPILE_CACHE', (t) => {
  const { status, stderr } = spawnSync(process.execPath, [MAIN, '--warm-up'], { env: {}, encoding: 'utf8' })
  t.equal(status, 78)
  t.match(stderr, 'NODE_COMPILE_CACHE')
  t.end()
})
