import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import { parse } from 'yaml'
import { startProvider } from '../../sandbox/provider.ts'
import { startUpstream } from '../../sandbox/upstream.ts'
import { createBudgetMetrics } from '../../src/telemetry/budget-metrics.ts'
import { createFeedMetrics } from '../../src/telemetry/feed-metrics.ts'
import { createIdentityMetrics } from '../../src/telemetry/identity-metrics.ts'
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
import { identityScenario } from '../support/alert-scenario-identity.ts'
import {
  arraysScenario,
  brokenFeedScenario,
  lostFeedScenario,
  narrowFeedScenario,
  unusedFeedScenario,
} from '../support/alert-scenarios-feed.ts'
import { heldBackScenario, limitedUsersScenario, usedBudgetScenario } from '../support/alert-scenarios-budget.ts'
import { NO_BUDGET } from '../support/no-budget.ts'
import type { Scenario } from '../support/scrapes.ts'
import { JarBrowser } from '../support/jar-browser.ts'
import { BrowserSocket } from '../support/browser-socket.ts'
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

/** Runs promtool, which is in Debian's package prometheus. @throws Error with the output of promtool if it fails */
function promtool(command: readonly string[], input = ''): void {
  try {
    execFileSync('promtool', command, { input, stdio: ['pipe', 'pipe', 'pipe'] })
  } catch (error) {
    const { code, stderr, stdout } = error as { code?: string; stderr?: Buffer; stdout?: Buffer }
    if (code === 'ENOENT') throw new Error('This test needs promtool: apt-get install prometheus', { cause: error })
    throw new Error(`promtool: ${String(stdout)}${String(stderr)}`, { cause: error })
  }
}

/** The metrics of a server after a login, API calls and a WebSocket message. */
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
    PUBLIC_FEED: 'shared',
    IDENTITY_PATH: '/account/v1/me',
    IDENTITY_POINTER: '/id',
    UPSTREAM_BUDGET: '300/60',
    WORKERS: workers,
  })
  t.ok(await ready(server))
  const browser = new JarBrowser()
  await logIn(browser, publicUrl, 'new@example.test')
  await browser.fetch('/api/trading/v1/options/accounts', { headers: { 'x-csrf': '1' } })
  await browser.fetch('/api/nothing')
  const line = new BrowserSocket(`ws://localhost:${port}/ws/public`, { origin: publicUrl })
  await line.opened()
  line.socket.send('{"ticks":"R_100"}')
  await line.count(1)
  line.socket.terminate()
  const metrics = await fetch(`http://127.0.0.1:${server.opsPort}/metrics`)
  t.match(metrics.headers.get('content-type'), 'text/plain')
  return metrics.text()
}

for (const workers of ['1', '2']) {
  await test(`promtool accepts the metrics of a server, which include those of the alerts (WORKERS=${workers})`, async (t) => {
    const metrics = await metricsAfterTraffic(t, workers)
    t.doesNotThrow(() => promtool(['check', 'metrics'], metrics))
    t.match(metrics, /^bff_ready 1$/m)
    t.match(metrics, /^bff_relay_messages_total\{direction="to_browser"\} [1-9]/m)
    const startedAt = Number(/^process_start_time_seconds (\d+)$/m.exec(metrics)?.[1])
    t.ok(startedAt <= Date.now() / 1000 && startedAt > Date.now() / 1000 - 60, 'and the start of the process')
    const exposed = new Set([...metrics.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name))
    const absent = workers === '1' ? ['bff_worker_restarts_total'] : []
    for (const { alert, expr } of alerts) {
      for (const { name } of metricsIn(expr)) {
        t.equal(exposed.has(baseOf(name)), !absent.includes(name), `${alert}: ${name}`)
      }
    }
  })
}

/** The metrics in a PromQL expression, with the labels of their selectors. */
function metricsIn(expr: string): { name: string; labels: string[] }[] {
  return [...expr.matchAll(/\b((?:bff|nodejs|process)_\w+)(?:\{([^}]*)\})?/g)].map(([, name = '', selector = '']) => ({
    name,
    labels: [...selector.matchAll(/(\w+)\s*[=!]/g)].map(([, label = '']) => label),
  }))
}

/** The name of the metric that a series belongs to; the series of a histogram have suffixes. */
function baseOf(name: string): string {
  return name.replace(/_(bucket|count)$/, '')
}

await test('promtool accepts docs/alerts.yaml', (t) => {
  t.doesNotThrow(() => promtool(['check', 'rules', RULES]))
  t.ok(alerts.length > 10)
  t.end()
})

await test('docs/alerts.yaml selects and groups by labels that the metrics have', (t) => {
  const { registry } = createMetrics()
  createFeedMetrics(registry)
  createIdentityMetrics(registry)
  createBudgetMetrics(registry, NO_BUDGET)
  addSecretsInfo(registry, ['a-secret'])
  const found = registry.getMetricsAsArray()
  // Prometheus adds these two labels itself.
  const addedLabels = new Set(['instance', 'le'])
  for (const { alert, expr } of alerts) {
    const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, names = '']) => names.split(/, */))
    for (const { name, labels } of metricsIn(expr)) {
      const metric = found.find((each) => each.name === baseOf(name)) as { labelNames?: string[] } | undefined
      for (const label of [...labels, ...grouped]) {
        t.ok(addedLabels.has(label) || metric?.labelNames?.includes(label), `${alert}: ${name} has ${label}`)
      }
    }
  }
  t.end()
})

await test('operating.md describes exactly the alerts of docs/alerts.yaml', (t) => {
  const text = readFileSync(new URL('../../docs/operating.md', import.meta.url), 'utf8')
  const entries = [...text.matchAll(/^\| `(Bff\w+)` \| \S.* \|$/gm)].map(([, name]) => name)
  t.same(new Set(entries), new Set(alerts.map(({ alert }) => alert)))
  t.end()
})

const usedMetrics = new Set(['up', ...alerts.flatMap(({ expr }) => metricsIn(expr).map(({ name }) => name))])

/** A PromQL expression: 1 if an alert has fired within the last ninety minutes, else 0. */
const firedQuery = (alert: string): string =>
  `(count(count_over_time(ALERTS{alertname="${alert}",alertstate="firing"}[90m])) > bool 0) or vector(0)`

const STARTERS: readonly ((t: Test) => Promise<Scenario | Scenario[]>)[] = [
  loginAndCallScenarios,
  identityScenario,
  fullStoreScenarios,
  limitScenario,
  storeScenario,
  replicaScenario,
  socketScenario,
  narrowFeedScenario,
  brokenFeedScenario,
  lostFeedScenario,
  unusedFeedScenario,
  arraysScenario,
  usedBudgetScenario,
  heldBackScenario,
  limitedUsersScenario,
  secretsScenario,
  firstRefusalScenario,
  restartScenario,
  scarcityScenario,
  ordinaryScenario,
]
/** `up` is a metric of Prometheus itself. */
const GONE: Scenario = {
  name: 'no instance responds',
  raises: ['BffGone', 'BffInstanceDown'],
  scrapes: { a: { after: '# TYPE up gauge\nup{job="trading-bff"} 0' } },
}

await test('Every alert fires in its scenarios, on metrics that servers exported, and in no other', async (t) => {
  const scenarios = [GONE]
  const started = await Promise.all(STARTERS.map(async (start) => [await start(t)].flat()))
  scenarios.push(...started.flat(), ...(await lagScenarios(t)))
  const raised = new Set(scenarios.flatMap(({ raises }) => raises))
  t.same(raised, new Set(alerts.map(({ alert }) => alert)), 'every alert has a scenario')
  const file = join(t.testdir({}), 'tests.json')
  const tests = scenarios.map(ruleTest)
  // promtool reads YAML, of which JSON is a subset.
  writeFileSync(file, JSON.stringify({ rule_files: [RULES], evaluation_interval: '1m', tests }))
  t.doesNotThrow(() => promtool(['test', 'rules', file]))
})

/** A test in promtool's format: which alerts fire within ninety minutes of a scenario. */
function ruleTest({ name, raises, scrapes }: Scenario): object {
  const series = Object.entries(scrapes).flatMap(([instance, scraped]) => seriesOf(instance, scraped))
  return {
    name,
    interval: '1m',
    input_series: series,
    promql_expr_test: alerts.map(({ alert }) => ({
      expr: firedQuery(alert),
      eval_time: '90m',
      exp_samples: [{ labels: '{}', value: raises.includes(alert) ? 1 : 0 }],
    })),
  }
}

/**
 * The input series of an instance. A counter grows every minute by as much as between the two scrapes; a gauge changes
 * after half an hour.
 */
function seriesOf(instance: string, { before, after }: Scenario['scrapes'][string]): object[] {
  const types = new Map([...after.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name, type]) => [name, type]))
  const earlier = before === undefined ? undefined : samples(before)
  return [...samples(after)].flatMap(([series, value]) => {
    const [, name = '', labels = ''] = /^(\w+)(?:\{(.*)\})?$/.exec(series) ?? []
    if (!usedMetrics.has(name)) return []
    const type = types.get(name) ?? types.get(baseOf(name))
    const label = `${labels === '' ? '' : `${labels},`}instance="${instance}"`
    const old = earlier?.get(series)
    if (type === 'gauge' && old !== undefined) {
      return [{ series: `${name}{${label}}`, values: `${old}x30 ${value}x59` }]
    }
    const growth = type === 'gauge' || earlier === undefined ? 0 : value - (old ?? 0)
    const start = type === 'gauge' ? value : 0
    // An instance without an earlier scrape appears in the thirty-first minute.
    const values = earlier === undefined && name !== 'up' ? `_x30 ${value}x60` : `${start}+${growth}x90`
    return [{ series: `${name}{${label}}`, values }]
  })
}

/** The samples of a scrape by series. */
function samples(text: string): Map<string, number> {
  const lines = [...text.matchAll(/^(\w+(?:\{.*\})?) (\S+)$/gm)]
  return new Map(lines.map(([, series = '', value = '']) => [series, Number(value)]))
}
