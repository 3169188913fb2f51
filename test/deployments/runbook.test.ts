import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { promtool } from '../support/alerts/promtool.ts'
import { OPS_TOKEN } from '../support/login/identity.ts'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { makeSecrets, projectFile } from '../support/deployment/files.ts'
import { ready, serverProcess } from '../support/server/server-process.ts'
import { startParts } from '../support/world.ts'
import { until } from '../support/time/until.ts'
import { logIn } from '../support/parts.ts'

const RUNBOOK = projectFile('docs/operating/runbook.md')
const TOOLBOX = projectFile('deploy/toolbox.sh')
/** The commands in the text of the runbook, each once. Those in blocks have tests of their own. */
const COMMANDS = new Set(
  [...RUNBOOK.replaceAll(/^ *```[^]*?^ *```$/gm, '').matchAll(/`((?:recent|now|logs|redis|curl) [^`]*|recent)`/g)].map(
    ([, command = '']) => command.replaceAll(/\s+/g, ' '),
  ),
)

/** A server with all that it can count, and a shell with the functions of the runbook. */
async function runbookWorld(t: Test) {
  const { provider, upstream, settings, port, publicUrl } = await startParts(t, { redis: true })
  // As make-secrets.sh writes it: a password, and no user.
  const { REDIS_URL: open = '' } = settings
  const REDIS_URL = open.replace('://', '://:a-password@')
  execFileSync('redis-cli', ['-u', open, 'CONFIG', 'SET', 'requirepass', 'a-password'])
  const server = await serverProcess(t, {
    ...settings,
    REDIS_URL,
    PORT: String(port),
    PUBLIC_FEED: 'shared',
    IDENTITY_PATH: '/account/v1/me',
    IDENTITY_POINTER: '/id',
    UPSTREAM_BUDGET: '300/20',
    OPS_TOKEN,
  })
  t.ok(await ready(server))
  const dir = t.testdir({})
  const run = async (command: string): Promise<{ code: number; stdout: string; stderr: string }> => {
    writeFileSync(join(dir, 'log'), server.output().stdout)
    const functions = TOOLBOX.replace(/^ops=.*/m, `ops=http://127.0.0.1:${server.opsPort}`)
      .replace(/^logs\(\) .*/m, 'logs() { cat log; }')
      .replace('sleep 10', 'sleep 1')
    const link = `${publicUrl}/auth/signup?utm_medium=affiliate`
    const env = { PATH: process.env['PATH'], REDIS_URL, OPS_TOKEN, link }
    const shell = spawn('bash', ['-c', `${functions}\n${command}`], {
      cwd: dir,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const [stdout, stderr, [code]] = await Promise.all([
      text(shell.stdout),
      text(shell.stderr),
      once(shell, 'exit') as Promise<[number]>,
    ])
    return { code, stdout, stderr }
  }
  return { publicUrl, upstream, provider, run }
}

await test('Every command of the runbook runs', async (t) => {
  const { publicUrl, run } = await runbookWorld(t)
  const browser = new JarBrowser()
  await logIn(browser, publicUrl, 'new@example.test')
  t.ok(COMMANDS.size > 30)
  for (const command of COMMANDS) {
    const { code, stdout, stderr } = await run(command)
    t.ok(code === 0 || code === 1, `${command}: ${code}`)
    t.equal(stderr.replaceAll(/^sending REPLCONF.*|^SYNC.*|^Transfer.*/gm, '').trim(), '', command)
    if (/^(?:curl|redis [A-Z])/.test(command)) t.not(stdout, '', command)
  }
})

await test('What the runbook says to look at first shows why logins fail, and that Redis is full', async (t) => {
  const { publicUrl, provider, run } = await runbookWorld(t)
  await provider.close()
  const counted = new AbortController()
  const counting = run('recent logins').finally(() => counted.abort())
  while (!counted.signal.aborted) {
    const failed = await new JarBrowser().navigate(`${publicUrl}/auth/callback?code=x&state=unknown-state`)
    t.match(failed.url.search, 'auth_error=state_mismatch')
    await setTimeout(100)
  }
  t.match((await counting).stdout, /^\d+ bff_logins_total\{flow="unknown",outcome="state_mismatch"\}/m)

  await run('redis CONFIG SET maxmemory 1')
  const refused = await new JarBrowser().navigate(`${publicUrl}/auth/login`)
  t.match(refused.url.search, 'auth_error=try_later')
  // The next probe finds it, within a second.
  await until(async () => (await run('curl -s $ops/readyz')).stdout.includes('Redis is full'), '/readyz says it')
  t.match((await run('now session_store_refused')).stdout, /reason="oom"\} [1-9]/)
  // A line may reach the file after its response has reached the browser.
  await until(async () => /OOM/.test((await run('logs | grep login_not_started')).stdout), 'the log says OOM')
})

await test('The runbook shows until when a certificate is valid, and haproxy takes its lines that block', async (t) => {
  const secrets = makeSecrets(join(t.testdir({}), 'secrets'))
  const pem = readFileSync(join(secrets, 'certificate.pem'))
  const server = createServer({ key: pem, cert: pem }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const [, look = ''] = /```bash\n( *openssl s_client[^]*?)```/.exec(RUNBOOK) ?? []
  const shell = spawn('bash', ['-c', look.replace(':443', `:${port}`)], { env: { ...process.env, host: 'localhost' } })
  t.match(await text(shell.stdout), /^notAfter=.* GMT\nissuer=/)

  const [, lines = ''] = /```\n( *http-request deny[^]*?)```/.exec(RUNBOOK) ?? []
  t.match(lines, /src [^]*url_param/)
  const file = join(secrets, 'haproxy.cfg')
  const config = projectFile('deploy/haproxy.cfg')
    .replaceAll('/run/secrets/certificate', join(secrets, 'certificate.pem'))
    .replace(/^frontend public\n/m, (frontend) => frontend + lines)
  writeFileSync(file, config)
  t.doesNotThrow(() => execFileSync('haproxy', ['-c', '-f', file], { stdio: 'pipe' }))
})

await test('count shows texts as a whole, also those that hold commas, braces and quotes', (t) => {
  const lines = ['{"msg":"a, {b} \\"c\\", d","status":503,"ms":1}', '{"msg":"a, {b} \\"c\\", d","status":503}']
  const count = (field: string): string =>
    execFileSync('bash', ['-c', `${TOOLBOX}\ncount ${field}`], { input: lines.join('\n'), encoding: 'utf8' }).trim()
  t.equal(count('msg'), '2 "msg":"a, {b} \\"c\\", d"')
  t.equal(count('status'), '2 "status":503')
  t.end()
})

await test('Prometheus accepts the file of the runbook, with the alerts beside it', (t) => {
  const [, config = ''] = /```yaml\n(global:[^]*?)```/.exec(RUNBOOK) ?? []
  const dir = t.testdir({ 'prometheus.yml': config, 'alerts.yaml': projectFile('docs/alerts.yaml') })
  t.doesNotThrow(() => promtool(['check', 'config', join(dir, 'prometheus.yml')]))
  t.end()
})

await test('The command at the head of the alerts puts another name of the job into every place, and another address', (t) => {
  const alerts = projectFile('docs/alerts.yaml')
  const [, command = ''] = /^#\s+(sed -i .*)$/m.exec(alerts) ?? []
  const dir = t.testdir({ 'alerts.yaml': alerts })
  execFileSync('bash', ['-c', command], { cwd: dir })
  const named = readFileSync(join(dir, 'alerts.yaml'), 'utf8')
  t.notMatch(named, 'job="trading-bff"')
  t.notMatch(named, 'https://guide.example')
  t.end()
})
