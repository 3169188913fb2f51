import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { startFleet } from '../support/deployment/deployed.ts'
import { NGINX } from '../support/proxies/documented-proxies.ts'
import { enterNamespaces } from '../support/deployment/namespaces.ts'
import { checkProxy, checkSilentHost } from '../support/proxies/checks.ts'
import { proxyProcess } from '../support/proxies/process.ts'
import { ready } from '../support/server/server-process.ts'
import { untilSlow as until } from '../support/time/until.ts'
import { OPERATING_GUIDE } from '../support/deployment/operating-guide.ts'

const skip = enterNamespaces()

await test('nginx with the documented configuration meets the requirements for a balancer', { skip }, (t) =>
  checkProxy(t, NGINX),
)

await test('nginx loses no request to a host that is gone', { skip }, (t) => checkSilentHost(t, NGINX))

await test(
  'A health check of haproxy fails on PORT and succeeds on OPS_PORT with the documented options',
  { skip },
  async (t) => {
    const { launch } = await startFleet(t, 'https://localhost')
    t.ok(await ready(await launch('10.0.0.11')))
    const [, option = '', check = ''] =
      /must ask the ops port: `(option httpchk .*)`\s+and\s+`(check .*)`/.exec(OPERATING_GUIDE) ?? []
    const config = join(t.testdir({}), 'haproxy.cfg')
    await writeFile(
      config,
      `global
  log stdout format raw local0
defaults
  mode http
  log global
  timeout connect 1s
  timeout client 1s
  timeout server 1s
  default-server inter 200ms fall 1 rise 1
frontend public
  bind 127.0.0.1:8080
backend plain
  option httpchk
  server app 10.0.0.11:3000 check
backend documented
  option log-health-checks
  ${option}
  server app 10.0.0.11:3000 ${check}
`,
    )
    const haproxy = await proxyProcess(t, 'haproxy', ['-db', '-f', config], {
      port: 8080,
      log: join(t.testdirName, 'log'),
    })
    await until(async () => / plain\/app is DOWN/.test(await haproxy.output()))
    await until(async () => / documented\/app succeeded.*code: 200/.test(await haproxy.output()))
    const log = await haproxy.stop('SIGUSR1')
    t.match(log, /plain\/app is DOWN, reason: Layer7 wrong status, code: 426/)
    t.notMatch(log, 'documented/app is DOWN')
  },
)
