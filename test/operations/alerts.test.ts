import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import { parse } from 'yaml'
import { startProvider } from '../../sandbox/provider.ts'
import { startUpstream } from '../../sandbox/upstream.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { addSecretsInfo } from '../../src/telemetry/secrets-info.ts'
import {
  fullStoreScenarios,
  limitScenario,
  loginAndCallScenarios,
  ordinaryScenario,
  replicaScenario,
  socketScenario,
  storeScenario,
} from '../support/alert-scenarios.ts'
import {
  lagScenarios,
  firstRefusalScenario,
  restartScenario,
  scarcityScenario,
  secretsScenario,
} from '../support/alert-scenarios-processes.ts'
import type { Scenario } from '../support/scrapes.ts'
import { JarBrowser } from '../support/jar-browser.ts'
import { BrowserSocket as BrowserLine } from '../support/browser-socket.ts'
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
  const { registry } = createMetrics()
  addSecretsInfo(registry, ['a-secret'])
  const found = registry.getMetricsAsArray()
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

const used = new Set(['up', ...alerts.flatMap(({ expr }) => metricsIn(expr).map(({ name }) => name))])

/** 1 when an alert has fired in the last ninety minutes, else 0. */
const fired = (alert: string): string =>
  `(count(count_over_time(ALERTS{alertname="${alert}",alertstate="firing"}[90m])) > bool 0) or vector(0)`

const STARTERS: readonly ((t: Test) => Promise<Scenario | Scenario[]>)[] = [
  loginAndCallScenarios,
  fullStoreScenarios,
  limitScenario,
  storeScenario,
  replicaScenario,
  socketScenario,
  secretsScenario,
  firstRefusalScenario,
  restartScenario,
  scarcityScenario,
  ordinaryScenario,
]
/** What Prometheus says itself. */
const GONE: Scenario = {
  name: 'no instance answers',
  raises: ['BffGone', 'BffInstanceDown'],
  scrapes: { a: { after: '# TYPE up gauge\nup{job="trading-bff"} 0' } },
}

await test('every alert fires on what a server says when it should, and on nothing else', async (t) => {
  const scenarios = [GONE]
  const started = await Promise.all(STARTERS.map(async (start) => [await start(t)].flat()))
  scenarios.push(...started.flat(), ...(await lagScenarios(t)))
  const raised = new Set(scenarios.flatMap(({ raises }) => raises))
  t.same(raised, new Set(alerts.map(({ alert }) => alert)), 'each has a scenario')
  const file = join(t.testdir({}), 'tests.json')
  // JSON is YAML too.
  const tests = scenarios.map(ruleTest)
  writeFileSync(file, JSON.stringify({ rule_files: [RULES], evaluation_interval: '1m', tests }))
  t.doesNotThrow(() => promtool(['test', 'rules', file]))
})

/** A test of promtool's: which alerts have fired in ninety minutes of what happened in a scenario. */
function ruleTest({ name, raises, scrapes }: Scenario): object {
  const series = Object.entries(scrapes).flatMap(([instance, scraped]) => seriesOf(instance, scraped))
  return {
    name,
    interval: '1m',
    input_series: series,
    promql_expr_test: alerts.map(({ alert }) => ({
      expr: fired(alert),
      eval_time: '90m',
      exp_samples: [{ labels: '{}', value: raises.includes(alert) ? 1 : 0 }],
    })),
  }
}

/** What grew between two scrapes grows by as much in every minute; any other value changes after half an hour. */
function seriesOf(instance: string, { before, after }: Scenario['scrapes'][string]): object[] {
  const types = new Map([...after.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name, type]) => [name, type]))
  const was = before === undefined ? undefined : samples(before)
  return [...samples(after)].flatMap(([series, value]) => {
    const [, name = '', labels = ''] = /^(\w+)(?:\{(.*)\})?$/.exec(series) ?? []
    if (!used.has(name)) return []
    const type = types.get(name) ?? types.get(baseOf(name))
    const label = `${labels === '' ? '' : `${labels},`}instance="${instance}"`
    const old = was?.get(series)
    if (type === 'gauge' && old !== undefined) {
      return [{ series: `${name}{${label}}`, values: `${old}x30 ${value}x59` }]
    }
    const growth = type === 'gauge' || was === undefined ? 0 : value - (old ?? 0)
    const start = type === 'gauge' ? value : 0
    // An instance that was not there before is there from the thirty-first minute on.
    const values = was === undefined && name !== 'up' ? `_x30 ${value}x60` : `${start}+${growth}x90`
    return [{ series: `${name}{${label}}`, values }]
  })
}

/** The samples of a scrape, by series. */
function samples(text: string): Map<string, number> {
  const lines = [...text.matchAll(/^(\w+(?:\{.*\})?) (\S+)$/gm)]
  return new Map(lines.map(([, series = '', value = '']) => [series, Number(value)]))
}
