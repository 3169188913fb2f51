import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import { parse } from 'yaml'
import { startProvider } from '../../sandbox/provider.ts'
import { startUpstream } from '../../sandbox/upstream.ts'
import { createMetrics } from '../../src/measure.ts'
import { JarBrowser } from '../support/jar-browser.ts'
import { BrowserLine } from '../support/browser-line.ts'
import { ready, serverProcess } from '../support/server-process.ts'
import { freePort } from '../../sandbox/listening.ts'
import { CLIENT_ID, logIn, SECRETS, testRedis } from '../support/world.ts'

interface Alert {
  readonly alert: string
  readonly expr: string
}

const RULES = fileURLToPath(new URL('../../docs/alerts.yaml', import.meta.url))
const { groups } = parse(readFileSync(RULES, 'utf8')) as { groups: { rules: Alert[] }[] }
const alerts = groups.flatMap(({ rules }) => rules)

/** Debian's, of the package prometheus. @throws Error with what it has to say */
function promtool(command: readonly string[], input = ''): void {
  try {
    execFileSync('promtool', command, { input, stdio: ['pipe', 'pipe', 'pipe'] })
  } catch (error) {
    const { code, stderr, stdout } = error as { code?: string; stderr?: Buffer; stdout?: Buffer }
    if (code === 'ENOENT')
      throw new Error('This test needs promtool: apt-get install prometheus', { cause: error })
    throw new Error(`promtool: ${String(stdout)}${String(stderr)}`, { cause: error })
  }
}

/** What the ops listener of a process answers after a login, calls and a socket. */
async function metricsAfterTraffic(t: Test, workers: string): Promise<string> {
  const port = await freePort()
  const publicUrl = `http://localhost:${port}`
  const provider = await startProvider({ clientId: CLIENT_ID, redirectUris: [`${publicUrl}/auth/callback`] })
  t.teardown(() => provider.close())
  const upstream = await startUpstream({ provider, tickMs: 50 })
  t.teardown(() => upstream.close())
  const server = await serverProcess(t, {
    PUBLIC_URL: publicUrl,
    AUTH_URL: provider.url,
    API_URL: upstream.url,
    WS_URL: upstream.wsUrl,
    REDIS_URL: (await testRedis(t)).url,
    SESSION_SECRETS: SECRETS,
    CLIENT_ID,
    PORT: String(port),
    WORKERS: workers,
  })
  t.ok(await ready(server))
  const browser = new JarBrowser()
  await logIn(browser, publicUrl, 'new@example.test')
  await browser.fetch('/api/trading/v1/options/accounts', { headers: { 'x-csrf': '1' } })
  await browser.fetch('/api/nothing')
  const line = new BrowserLine(`ws://localhost:${port}/ws/public`, { origin: publicUrl })
  await line.opened()
  line.socket.send('{"ticks":"R_100"}')
  await line.count(1)
  line.socket.terminate()
  const metrics = await fetch(`http://127.0.0.1:${server.opsPort}/metrics`)
  t.match(metrics.headers.get('content-type'), 'text/plain')
  return metrics.text()
}

for (const workers of ['1', '2']) {
  await test(`promtool finds nothing to say about the metrics of ${workers} process(es)`, async (t) => {
    const metrics = await metricsAfterTraffic(t, workers)
    t.doesNotThrow(() => promtool(['check', 'metrics'], metrics))
    t.match(metrics, /^bff_ready 1$/m)
    t.match(metrics, /^bff_relay_messages_total\{direction="to_browser"\} [1-9]/m)
    const exposed = new Set([...metrics.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name))
    const only = workers === '1' ? ['bff_worker_restarts_total'] : ['process_start_time_seconds']
    for (const { alert, expr } of alerts) {
      for (const { name } of metricsIn(expr)) {
        t.equal(exposed.has(baseOf(name)), !only.includes(name), `${alert}: ${name}`)
      }
    }
  })
}

/** The metrics of an expression, and the labels that it selects by. */
function metricsIn(expr: string): { name: string; labels: string[] }[] {
  return [...expr.matchAll(/\b((?:bff|nodejs|process)_\w+)(?:\{([^}]*)\})?/g)].map(
    ([, name = '', selector = '']) => ({
      name,
      labels: [...selector.matchAll(/(\w+)\s*[=!]/g)].map(([, label = '']) => label),
    }),
  )
}

/** A histogram has a name of its own beside those of its series. */
function baseOf(name: string): string {
  return name.replace(/_(bucket|count)$/, '')
}

await test('promtool finds nothing to say about the rules', (t) => {
  t.doesNotThrow(() => promtool(['check', 'rules', RULES]))
  t.ok(alerts.length > 10)
  t.end()
})

await test('the alerts select and group by labels that the metrics have', (t) => {
  const found = createMetrics().registry.getMetricsAsArray()
  // Prometheus adds these two itself.
  const everywhere = new Set(['instance', 'le'])
  for (const { alert, expr } of alerts) {
    const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, names = '']) => names.split(/, */))
    for (const { name, labels } of metricsIn(expr)) {
      const metric = found.find((each) => each.name === baseOf(name)) as { labelNames?: string[] } | undefined
      for (const label of [...labels, ...grouped]) {
        t.ok(everywhere.has(label) || metric?.labelNames?.includes(label), `${alert}: ${name} has ${label}`)
      }
    }
  }
  t.end()
})

await test('every alert has an entry in operating.md, and there is none besides', (t) => {
  const text = readFileSync(new URL('../../docs/operating.md', import.meta.url), 'utf8')
  const entries = [...text.matchAll(/^\| `(Bff\w+)` \| \S.* \|$/gm)].map(([, name]) => name)
  t.same(new Set(entries), new Set(alerts.map(({ alert }) => alert)))
  t.end()
})

/** Series that make an alert fire, and such that do not: a value, and how much it grows in a minute. */
type Series = Record<string, [start: number, growth: number]>
const request = (status: number) => `bff_http_request_duration_seconds_count{instance="a",status="${status}"}`
const bucket = (le: string) => `bff_http_request_duration_seconds_bucket{route="/api/v1/health",le="${le}"}`
const upstreamBucket = (le: string) =>
  `bff_upstream_request_duration_seconds_bucket{route="/v1/health",le="${le}"}`
const call = (outcome: string) => `bff_upstream_requests_total{route="/v1/health",outcome="${outcome}"}`
const refresh = (outcome: string) => `bff_token_refreshes_total{outcome="${outcome}"}`
const link = (outcome: string, by: string) => `bff_attribution_links_total{outcome="${outcome}",by="${by}"}`
const ending = (code: string) => `bff_relay_endings_total{code="${code}"}`
const refusedLogin = 'bff_logins_total{flow="login",outcome="invalid_client"}'
const CASES: Record<string, { fires: Series; quiet: Series }> = {
  BffStoreDown: { fires: { bff_session_store_up: [0, 0] }, quiet: { bff_session_store_up: [1, 0] } },
  BffNotReady: { fires: { bff_ready: [0, 0] }, quiet: { bff_ready: [1, 0] } },
  BffServerErrors: {
    fires: { [request(200)]: [0, 90], [request(502)]: [0, 10] },
    quiet: { [request(200)]: [0, 90], [request(502)]: [0, 1], [request(404)]: [0, 90] },
  },
  BffUpstreamFailing: {
    // Either alone would not be enough.
    fires: { [call('answered')]: [0, 94], [call('timeout')]: [0, 3], [call('server_error')]: [0, 3] },
    quiet: { [call('answered')]: [0, 90], [call('browserGone')]: [0, 50] },
  },
  BffSlow: {
    fires: { [bucket('2.5')]: [0, 97], [bucket('10')]: [0, 100], [bucket('+Inf')]: [0, 100] },
    quiet: { [bucket('0.5')]: [0, 100], [bucket('2.5')]: [0, 100], [bucket('+Inf')]: [0, 100] },
  },
  BffUpstreamSlow: {
    fires: {
      [upstreamBucket('2.5')]: [0, 97],
      [upstreamBucket('10')]: [0, 100],
      [upstreamBucket('+Inf')]: [0, 100],
    },
    quiet: { [upstreamBucket('2.5')]: [0, 100], [upstreamBucket('+Inf')]: [0, 100] },
  },
  BffClientRefused: { fires: { [refusedLogin]: [0, 1] }, quiet: { [refusedLogin]: [5, 0] } },
  BffRefreshesFailing: {
    fires: { [refresh('granted')]: [0, 1], [refresh('unavailable')]: [0, 1] },
    quiet: { [refresh('granted')]: [0, 9], [refresh('invalid_grant')]: [0, 1] },
  },
  BffRelaysNearLimit: {
    fires: {
      'bff_relays{kind="public"}': [900, 0],
      'bff_relays{kind="demo"}': [90, 0],
      bff_relay_limit: [1000, 0],
    },
    quiet: {
      'bff_relays{kind="public"}': [700, 0],
      'bff_relays{kind="demo"}': [90, 0],
      bff_relay_limit: [1000, 0],
    },
  },
  BffSlowConsumers: {
    fires: { [ending('4408')]: [0, 2], [ending('1000')]: [0, 8] },
    quiet: { [ending('4408')]: [0, 1], [ending('1000')]: [0, 80] },
  },
  BffEventLoopLag: {
    fires: { nodejs_eventloop_lag_p99_seconds: [0.3, 0] },
    quiet: { nodejs_eventloop_lag_p99_seconds: [0.02, 0] },
  },
  BffLogoutUnreplicated: {
    fires: { bff_session_ends_unreplicated_total: [0, 1] },
    quiet: { bff_session_ends_unreplicated_total: [7, 0] },
  },
  BffAttributionBroken: {
    fires: { [link('partial', 'navigation')]: [0, 1], [link('complete', 'navigation')]: [0, 4] },
    quiet: { [link('partial', 'fetch')]: [0, 9], [link('complete', 'navigation')]: [0, 4] },
  },
  BffRestarting: {
    fires: { process_start_time_seconds: [0, 60] },
    quiet: { process_start_time_seconds: [0, 0], bff_worker_restarts_total: [1, 0] },
  },
}

await test('every alert fires when it should, and not when it should not', (t) => {
  t.same(
    Object.keys(CASES),
    alerts.map(({ alert }) => alert),
  )
  const tests = Object.entries(CASES).flatMap(([alert, { fires, quiet }]) => [
    ruleTest(alert, fires, 1),
    ruleTest(alert, quiet, 0),
  ])
  const file = join(t.testdir({}), 'tests.json')
  // JSON is YAML too.
  writeFileSync(file, JSON.stringify({ rule_files: [RULES], evaluation_interval: '1m', tests }))
  t.doesNotThrow(() => promtool(['test', 'rules', file]))
  t.end()
})

/** A test of promtool's: how often an alert fires after three hours. */
function ruleTest(alert: string, series: Series, expected: number): object {
  const firing = `count(ALERTS{alertname="${alert}",alertstate="firing"}) or vector(0)`
  return {
    interval: '1m',
    input_series: Object.entries(series).map(([name, [start, growth]]) => ({
      series: name,
      values: `${start}+${growth}x180`,
    })),
    promql_expr_test: [{ expr: firing, eval_time: '3h', exp_samples: [{ labels: '{}', value: expected }] }],
  }
}
