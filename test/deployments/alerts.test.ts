import { readFileSync } from 'node:fs'
import { test, type Test } from 'tap'
import { parse } from 'yaml'
import {
  fullStoreScenario,
  limitScenario,
  loginAndCallScenarios,
  lostMasterScenario,
  ordinaryScenario,
  replicaScenario,
  sessionScenarios,
  socketScenario,
  storeScenario,
} from '../support/alerts/scenarios.ts'
import {
  lagScenarios,
  firstRefusalScenario,
  pausedScenario,
  rejectionScenario,
  restartScenario,
  scarcityScenario,
  hangingLogScenario,
  secretsScenario,
  refusedFileScenario,
  silentWorkerScenario,
} from '../support/alerts/process-scenarios.ts'
import { identityScenario } from '../support/alerts/identity-scenario.ts'
import {
  arraysScenario,
  brokenFeedScenario,
  lostFeedScenario,
  narrowFeedScenario,
  unusedFeedScenario,
} from '../support/alerts/feed-scenarios.ts'
import { heldBackScenario, limitedUsersScenario, usedBudgetScenario } from '../support/alerts/budget-scenarios.ts'
import { ALERT_RULES as RULES } from '../support/alerts/prometheus.ts'
import { metricsIn, unknownIn } from '../support/alerts/promql.ts'
import { promtool, rulesHold } from '../support/alerts/promtool.ts'
import { baseOf, ruleTest } from '../support/alerts/rule-tests.ts'
import type { Scenario } from '../support/alerts/scrapes.ts'
import { orderScenarios } from '../support/alerts/order-scenarios.ts'
import { failingSocketScenarios, memoryScenario } from '../support/alerts/socket-scenarios.ts'
import { trafficScenarios } from '../support/alerts/traffic-scenarios.ts'
import { OPS_TOKEN } from '../support/login/identity.ts'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { BrowserSocket } from '../support/browser/browser-socket.ts'
import { ready, serverProcess } from '../support/server/server-process.ts'
import { SecretVolume } from '../support/config/secret-volume.ts'
import { SECRETS } from '../support/server/test-server.ts'
import { logIn } from '../support/parts.ts'
import { startParts } from '../support/world.ts'

interface Alert {
  readonly alert: string
  readonly expr: string
}

/** Twice the usual one. The many scenarios take twice as much again, since their evaluations take most of the time. */
const EVALUATION_INTERVAL = '2m'
const SCENARIO_INTERVAL = '4m'
const { groups } = parse(readFileSync(RULES, 'utf8')) as { groups: { rules: Alert[] }[] }
const alerts = groups.flatMap(({ rules }) => rules)

/** The metrics of a server after a login, API calls and a WebSocket message. */
async function metricsAfterTraffic(t: Test, workers: string): Promise<string> {
  const volume = new SecretVolume(t.testdir({}), { SESSION_SECRETS: SECRETS })
  const { settings, port, publicUrl } = await startParts(t, { redis: true, settings: volume.settings })
  const server = await serverProcess(t, {
    ...settings,
    PORT: String(port),
    PUBLIC_FEED: 'shared',
    IDENTITY_PATH: '/account/v1/me',
    IDENTITY_POINTER: '/id',
    OPS_TOKEN,
    // A short window, so that a start waits for five seconds and not for fifteen.
    UPSTREAM_BUDGET: '300/20',
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
    const absent = workers === '1' ? ['bff_worker_restarts_total', 'bff_workers_silent'] : []
    for (const { alert, expr } of alerts) {
      for (const { name } of metricsIn(expr)) {
        t.equal(exposed.has(baseOf(name)), !absent.includes(name), `${alert}: ${name}`)
      }
    }
  })
}

await test('promtool accepts docs/alerts.yaml', (t) => {
  t.doesNotThrow(() => promtool(['check', 'rules', RULES]))
  t.ok(alerts.length > 10)
  t.end()
})

await test('docs/alerts.yaml selects and groups by labels that the metrics have', (t) => {
  for (const { alert, expr } of alerts) t.same(unknownIn(expr), [], alert)
  t.end()
})

const STARTERS: readonly ((t: Test) => Promise<Scenario | Scenario[]>)[] = [
  loginAndCallScenarios,
  identityScenario,
  fullStoreScenario,
  sessionScenarios,
  limitScenario,
  storeScenario,
  lostMasterScenario,
  replicaScenario,
  socketScenario,
  failingSocketScenarios,
  memoryScenario,
  orderScenarios,
  trafficScenarios,
  narrowFeedScenario,
  brokenFeedScenario,
  lostFeedScenario,
  unusedFeedScenario,
  arraysScenario,
  usedBudgetScenario,
  heldBackScenario,
  limitedUsersScenario,
  secretsScenario,
  refusedFileScenario,
  pausedScenario,
  firstRefusalScenario,
  rejectionScenario,
  restartScenario,
  silentWorkerScenario,
  scarcityScenario,
  hangingLogScenario,
  ordinaryScenario,
]
/** `up` is a metric of Prometheus itself. */
const DOWN: Scenario = {
  name: 'an instance does not respond',
  raises: ['BffInstanceDown'],
  scrapes: { a: { after: '# TYPE up gauge\nup 0' } },
}

await test('Every alert fires in its scenarios, on metrics that servers exported, and in no other', async (t) => {
  const scenarios = [DOWN]
  const started = await Promise.all(STARTERS.map(async (start) => [await start(t)].flat()))
  scenarios.push(...started.flat(), ...(await lagScenarios(t)))
  const raised = new Set(['BffGone', ...scenarios.flatMap(({ raises }) => raises)])
  t.same(raised, new Set(alerts.map(({ alert }) => alert)), 'every alert has a scenario')
  const metrics = new Set(['up', ...alerts.flatMap(({ expr }) => metricsIn(expr).map(({ name }) => name))])
  const tests = scenarios.map((scenario) => ruleTest(scenario, metrics))
  rulesHold(t, tests, SCENARIO_INTERVAL)
  const foreign = scenarios.map((scenario) => ruleTest(scenario, metrics, 'another-service'))
  rulesHold(t, foreign, SCENARIO_INTERVAL)
})

const readyIn = (environment: string, values: string): object => ({
  series: `bff_ready{job="trading-bff",environment="${environment}",instance="${environment}"}`,
  values,
})

await test('BffGone fires for an environment that is gone beside a living one, and where there never was any', (t) => {
  const gone = 'group by (environment) (ALERTS{alertname="BffGone",alertstate="firing"})'
  const production = { labels: '{environment="production"}', value: 1 }
  const beside = {
    interval: '1m',
    input_series: [readyIn('staging', '1x120'), readyIn('production', '1x30 _x90')],
    promql_expr_test: [
      { expr: gone, eval_time: '30m', exp_samples: [] },
      { expr: gone, eval_time: '60m', exp_samples: [production] },
    ],
  }
  const never = {
    interval: '1m',
    input_series: [{ series: 'bff_ready{job="another-service"}', values: '1x60' }],
    promql_expr_test: [{ expr: gone, eval_time: '30m', exp_samples: [{ labels: '{}', value: 1 }] }],
  }
  rulesHold(t, [beside, never], EVALUATION_INTERVAL)
  t.end()
})

await test('BffTrafficGone fires until traffic is back, also when the hour before has had none either', (t) => {
  const requests = 'bff_http_request_duration_seconds_count{route="/auth/session",instance="a",job="trading-bff"}'
  const lasting = {
    interval: '1m',
    input_series: [{ series: requests, values: '0+30x60 1800x180 1830+30x60' }],
    promql_expr_test: [trafficGone(65, 0), trafficGone(75, 1), trafficGone(239, 1), trafficGone(250, 0)],
  }
  rulesHold(t, [lasting], EVALUATION_INTERVAL)
  t.end()
})

/** Expects that BffTrafficGone fires at this minute (1), or does not (0). */
function trafficGone(minute: number, value: 0 | 1): object {
  const expr = 'count(ALERTS{alertname="BffTrafficGone",alertstate="firing"}) or vector(0)'
  return { expr, eval_time: `${minute}m`, exp_samples: [{ labels: '{}', value }] }
}
