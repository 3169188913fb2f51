import { test } from 'tap'
import { dashboard, queries } from '../support/alerts/dashboard.ts'
import { dashboardJourney } from '../support/alerts/dashboard-journey.ts'
import { startPrometheus, type Series } from '../support/alerts/prometheus.ts'

const JOB = 'trading-bff'

/** Queries, as panel and legend, that may show nothing but zeros after the journey, and why. */
const QUIET: Readonly<Record<string, string>> = {
  'Instances without Redis: without Redis': 'Redis is back at the end',
  'Sessions that begin and end: ended, but no replica knows': 'this Redis has no replica',
  'Bytes that wait for slow readers: {{instance}}': 'every browser reads',
  'Messages that slow browsers missed: {{instance}}': 'every browser reads',
  'Secrets in files: refused': 'no secret is in a file',
  'Secrets in files: in use': 'no secret is in a file',
  'OpenID Connect: logout by the provider: {{outcome}}': 'the service of the journey has no ID token',
  'OpenID Connect: claim left out: {{why}}': 'the service of the journey has no ID token',
  'Refreshes withheld: {{instance}}': 'the next login that succeeds ends it, before a scrape',
  'Losses of upstream: subscriptions refused': 'upstream refuses none',
  'Users whom upstream limits: held back: {{class}}': 'upstream limits single users',
  'Without the budget in Redis: instances': 'Redis is away for too short a time',
  'Without the budget in Redis: calls a minute': 'Redis is away for too short a time',
  'Keyed calls whose outcome is unknown: refused: too few replicas': 'this Redis has no replica',
  'Restarts, silent workers, unhandled errors, and lines of the log that were lost: restarts: {{instance}}':
    'only workers die',
  'Restarts, silent workers, unhandled errors, and lines of the log that were lost: silent: {{instance}}':
    'no worker hangs',
  'Restarts, silent workers, unhandled errors, and lines of the log that were lost: unhandled errors':
    'none is left unhandled',
  'Restarts, silent workers, unhandled errors, and lines of the log that were lost: lines lost':
    'the reader of the log is fast',
  'Sockets closed for memory: {{kind}}': 'every browser reads',
}

const nameOf = ({ panel, legend }: { panel: string; legend: string }): string => `${panel}: ${legend}`

/** What Grafana puts in the place of its variables when all instances are chosen. */
function asGrafana(expr: string): string {
  return expr.replaceAll('$job', JOB).replaceAll('$instance', '.+').replaceAll('$__rate_interval', '10s')
}

/** Whether a series says more than that nothing happened. */
const isPositive = ({ values }: Series): boolean =>
  values.some(([, value]) => Number.isFinite(Number(value)) && Number(value) > 0)

await test('Every query of the dashboard has a result that is not zero in a Prometheus that scraped a whole journey', async (t) => {
  const journey = await dashboardJourney(t)
  const prometheus = await startPrometheus(t, JOB, journey.targets)
  for (let round = 0; round < 2; round++) {
    // Before the first round, so that what happens in it is an increase.
    await prometheus.scraped()
    await journey.happens()
  }
  await prometheus.scraped()
  const names = new Set(queries.map(nameOf))
  t.same(
    Object.keys(QUIET).filter((name) => !names.has(name)),
    [],
    'only queries that exist are excused',
  )
  for (const query of queries) {
    const name = nameOf(query)
    const series = await prometheus.range(asGrafana(query.expr))
    t.ok(series.length > 0, `${name} is not empty`)
    if (!(name in QUIET)) t.ok(series.some(isPositive), `${name} shows what happened`)
  }
  for (const name of ['job', 'instance']) {
    const variable = dashboard.templating?.list?.find((each) => each.name === name)
    const query = (variable?.query as { query?: string } | undefined)?.query ?? ''
    const [, selector = '', label = ''] = /^label_values\((.*), (\w+)\)$/.exec(query) ?? []
    const found = new Set((await prometheus.labels(asGrafana(selector))).map((labels) => labels[label]))
    t.same(found, new Set(name === 'job' ? [JOB] : journey.targets), `the variable ${name}`)
  }
})
