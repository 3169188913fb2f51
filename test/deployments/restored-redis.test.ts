import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { answers, freePort } from '../../sandbox/listening.ts'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { projectFile } from '../support/deployment/files.ts'
import { OPERATING_GUIDE } from '../support/deployment/operating-guide.ts'
import { control } from '../support/controls/controls-world.ts'
import { OPS_TOKEN } from '../support/login/identity.ts'
import { isLoggedIn, logInThere, tokenEndpoint } from '../support/login/token-endpoint.ts'
import { ready, serverProcess, type ServerProcess } from '../support/server/server-process.ts'
import { CLIENT_ID, SECRETS } from '../support/server/test-server.ts'
import { TRANSFER } from '../support/user.ts'
import { untilSlow as until } from '../support/time/until.ts'

const [, SECTION = ''] = /\n### Back up and restore Redis\n([^]*?)\n### /.exec(OPERATING_GUIDE) ?? []
const [, BACK_UP = ''] = /`(redis --rdb [^`]+)`/.exec(SECTION) ?? []
const [, RESTORE = ''] = /```bash\n([^]*?)```/.exec(SECTION) ?? []
/** What the steps send to pause orders. */
const STEPS = [...SECTION.matchAll(/`ops \/orders -X PUT -d '(.*?)'`/g)].map(([, body]) => body)
const [, REDIS_FUNCTION = ''] = /^(redis\(\) .*)$/m.exec(projectFile('deploy/toolbox.sh')) ?? []

const opsOf = ({ opsPort }: ServerProcess) => ({ opsUrl: `http://127.0.0.1:${opsPort}` })

/** A Redis with an append-only file, and a shell with what the runbook defines. */
async function redisWithFile(t: Test) {
  const dir = t.testdir({})
  const port = await freePort()
  const conf = join(dir, 'redis.conf')
  const url = `redis://127.0.0.1:${port}`
  writeFileSync(conf, `port ${port}\nbind 127.0.0.1\ndir ${dir}\nappendonly yes\nappendfsync always\nsave ""\n`)
  const shell = async (commands: string): Promise<void> => {
    const env = { PATH: process.env['PATH'], REDIS_URL: url, conf }
    const child = spawn('bash', ['-euc', `${REDIS_FUNCTION}\n${commands}`], { cwd: dir, env, stdio: 'ignore' })
    const [code] = (await once(child, 'exit')) as [number]
    t.equal(code, 0, commands)
  }
  await shell('redis-server "$conf" --daemonize yes')
  await answers(port)
  t.teardown(() => void spawnSync('redis-cli', ['-u', url, 'SHUTDOWN', 'NOSAVE']))
  return { dir, url, shell }
}

await test('A Redis restored from a backup brings back the session that has logged out since, until the secret is another', async (t) => {
  t.ok(BACK_UP !== '' && RESTORE !== '' && REDIS_FUNCTION !== '', 'the runbook has the commands')
  const { dir, url, shell } = await redisWithFile(t)
  const endpoint = await tokenEndpoint(t)
  const port = await freePort()
  const publicUrl = `http://localhost:${port}`
  const start = async (secrets: string): Promise<ServerProcess> => {
    const server = await serverProcess(t, {
      PUBLIC_URL: publicUrl,
      AUTH_URL: endpoint.url,
      API_URL: 'http://127.0.0.1:9',
      WS_URL: 'ws://127.0.0.1:9',
      PORT: String(port),
      REDIS_URL: url,
      SESSION_SECRETS: secrets,
      CLIENT_ID,
      OPS_TOKEN,
    })
    t.ok(await ready(server))
    return server
  }
  const server = await start(SECRETS)
  const browser = new JarBrowser()
  await logInThere({ browser, server: { url: publicUrl } })
  await shell(BACK_UP)
  t.ok(existsSync(join(dir, 'backup.rdb')))
  // A copy of the cookie, as a thief has it.
  const thief = new JarBrowser()
  for (const [name, cookie] of browser.cookies) thief.cookies.set(name, cookie)
  const answer = await browser.fetch(`${publicUrl}/auth/logout`, { method: 'POST', headers: { 'x-csrf': '1' } })
  t.equal(answer.status, 204)
  t.notOk(await isLoggedIn(thief, publicUrl), 'the logout ends the session for the copy, too')

  await shell('redis SHUTDOWN NOSAVE || true')
  await shell(RESTORE.replace(/^conf=.*\n/, ''))
  await until(() => isLoggedIn(thief, publicUrl).catch(() => false), 'the ended session is back')
  t.notOk(await isLoggedIn(browser, publicUrl), 'the browser that logged out has no cookie any more')
  await shell('redis INFO persistence | grep -q aof_enabled:1')

  const command = async (server: ServerProcess, text = '') => {
    const { status } = await control(opsOf(server), 'PUT', '/orders', JSON.parse(text))
    t.equal(status, 200, text)
  }
  t.equal(STEPS.length, 2, 'the runbook pauses orders twice')
  await command(server, STEPS[0])
  server.child.kill('SIGTERM')
  await server.exited
  const restarted = await start('another-secret-of-thirty-two-bytes-or-more')
  t.notOk(await isLoggedIn(thief, publicUrl), 'under a new secret nothing that was restored can be read')

  const user = new JarBrowser()
  await logInThere({ browser: user, server: { url: publicUrl } })
  const order = async (): Promise<unknown> => {
    const init = {
      method: 'POST',
      headers: { 'x-csrf': '1', 'content-type': 'application/json' },
      body: '{"amount":1}',
    }
    return ((await (await user.fetch(`${publicUrl}${TRANSFER}`, init)).json()) as Record<string, unknown>)['code']
  }
  t.equal(await order(), 'session_store_unavailable', 'the pause cannot be read either')
  t.match(await control(opsOf(restarted), 'PUT', '/orders', { paused: true, message: 'here only' }), {
    status: 503,
    json: { error: /this instance cannot read the controls/ },
  })
  t.equal((await control(opsOf(restarted), 'DELETE', '/orders')).status, 503)
  t.equal(await order(), 'session_store_unavailable', 'no other command lets orders go')
  await command(restarted, STEPS[1])
  t.equal(await order(), 'orders_paused')
  t.match(await (await fetch(`${opsOf(restarted).opsUrl}/readyz`)).json(), { ready: true })
  t.equal((await control(opsOf(restarted), 'DELETE', '/orders')).status, 200)
  t.match(await order(), /^upstream_/)
})
