import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import program from '../../package.json' with { type: 'json' }
import { freePort } from '../../sandbox/listening.ts'
import { OPERATING_GUIDE } from '../support/deployment/operating-guide.ts'
import { ALONE } from '../support/server/settings.ts'
import { serverProcess } from '../support/server/server-process.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '')
const UNIT = readFileSync(join(ROOT, 'deploy/systemd/trading-bff.service'), 'utf8')
const WAIT = join(ROOT, 'deploy/systemd/wait-until-ready')
/** Tenths; the unit has 13. */
const MAX_EXPOSURE = 15

const analyze = (...args: string[]): string =>
  execFileSync('systemd-analyze', args, { encoding: 'utf8', stdio: 'pipe' })

await test('systemd accepts the unit, and finds little that it exposes', (t) => {
  const unit = join(t.testdir({}), 'trading-bff.service')
  // The programs that it starts must exist.
  writeFileSync(unit, UNIT.replaceAll('/opt/trading-bff', ROOT))
  t.equal(analyze('verify', unit), '')
  const report = analyze('security', '--offline=true', `--threshold=${MAX_EXPOSURE}`, '--no-pager', unit)
  t.match(report, /exposure level for trading-bff.service: \d/)
  t.end()
})

await test('The unit starts Node as npm start does', (t) => {
  const [, command = ''] = /exec (node .*)$/.exec(program.scripts.start) ?? []
  t.match(UNIT, `ExecStart=/opt/trading-bff/node_modules/.bin/${command}\n`)
  const variables = program.scripts.start.split(' exec ')[0]?.split(' ') ?? []
  t.ok(variables.length > 1)
  for (const variable of variables) t.match(UNIT, `${variable.split('=')[0]}=`)
  t.end()
})

await test('The command of the guide checks the settings and secrets of the unit', (t) => {
  const [, check = ''] = /^(SESSION_SECRETS_FILE=[^]*? --check)$/m.exec(OPERATING_GUIDE) ?? []
  const dir = t.testdir({
    'settings.env': Object.entries(ALONE)
      .map(([name, value]) => `${name}=${value}\n`)
      .join(''),
    'session-secrets': `${'s'.repeat(32)}\n`,
    'redis-url': 'redis://127.0.0.1:1\n',
  })
  const { stdout } = spawnSync('sh', ['-c', check.replaceAll('/etc/trading-bff', dir)], { cwd: ROOT, encoding: 'utf8' })
  t.match(stdout, /^ok +settings +valid/m)
  t.match(stdout, /^failed +REDIS_URL +127\.0\.0\.1:1/m)
  t.end()
})

await test('The unit waits until the instance is ready, and no longer than its process lasts', async (t) => {
  const [port, opsPort] = [await freePort(), await freePort()]
  const server = await serverProcess(t, { ...ALONE, PORT: String(port), OPS_PORT: String(opsPort) })
  const wait = spawn(process.execPath, [WAIT], {
    env: { MAINPID: String(server.child.pid), OPS_PORT: String(opsPort) },
    stdio: 'ignore',
  })
  const [ready] = (await once(wait, 'exit')) as [number]
  t.equal(ready, 0, 'it is ready')

  server.child.kill('SIGTERM')
  await server.exited
  const late = spawn(process.execPath, [WAIT], { env: { MAINPID: String(server.child.pid) }, stdio: 'ignore' })
  const [ended] = (await once(late, 'exit')) as [number]
  t.equal(ended, 1, 'its process has ended')
})
