import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { ALERT_RULES } from '../support/alerts/prometheus.ts'
import { metricsIn, unknownIn } from '../support/alerts/promql.ts'
import { GAUGES } from '../support/alerts/week/gauges.ts'
import { COUNTERS } from '../support/alerts/week/instance.ts'

/** Only with WORKERS. */
const ABSENT = new Set(['bff_worker_restarts_total', 'bff_workers_silent'])

await test('The simulated week has every metric of the alerts, with labels that the server gives them', (t) => {
  const series = [...COUNTERS, ...GAUGES].map(([name]) => name)
  for (const each of series) t.same(unknownIn(each), [], each)
  const names = new Set(series.map((each) => each.replace(/\{.*/, '')))
  for (const { name } of metricsIn(readFileSync(ALERT_RULES, 'utf8').replaceAll(/^ *#.*|^ *summary:.*/gm, ''))) {
    t.equal(names.has(name), !ABSENT.has(name), name)
  }
  t.end()
})
