import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { ALERT_RULES } from '../support/alerts/prometheus.ts'
import { metricsIn, unknownIn } from '../support/alerts/promql.ts'
import { rulesHold } from '../support/alerts/promtool.ts'
import { DAYS, minuteOf } from '../support/alerts/week/calendar.ts'
import { GAUGES } from '../support/alerts/week/gauges.ts'
import { COUNTERS } from '../support/alerts/week/instance.ts'
import { weekSeries } from '../support/alerts/week/week.ts'

/** The longest time that an alert looks back and waits, but for a whole day. */
const BEFORE = 240
/** What ordinary life raises in production: one process died on Thursday. */
const TICKETS: Readonly<Record<string, readonly string[]>> = { Thursday: ['BffDied'] }
/** Only with WORKERS. */
const ABSENT = new Set(['bff_worker_restarts_total', 'bff_workers_silent'])
const seed = Number(process.env['SEED'] ?? 1)
/** The guide says 15; then a week takes ten minutes and more. */
const stepSeconds = Number(process.env['STEP_SECONDS'] ?? 60)

await test('The simulated week has every metric of the alerts, with labels that the server gives them', (t) => {
  const series = [...COUNTERS, ...GAUGES].map(([name]) => name)
  for (const each of series) t.same(unknownIn(each), [], each)
  const names = new Set(series.map((each) => each.replace(/\{.*/, '')))
  for (const { name } of metricsIn(readFileSync(ALERT_RULES, 'utf8').replaceAll(/^ *#.*|^ *summary:.*/gm, ''))) {
    t.equal(names.has(name), !ABSENT.has(name), name)
  }
  t.end()
})

for (const [day, name] of DAYS.entries()) {
  await test(`${name} of a simulated week: ordinary life wakes nobody (SEED=${seed})`, (t) => {
    const [from, until] = [minuteOf(day, 0) - BEFORE, minuteOf(day + 1, 0)]
    const fired = {
      expr: 'group by (alertname, severity) (count_over_time(ALERTS{alertstate="firing",environment!="staging"}[1d]))',
      eval_time: `${until - from}m`,
      exp_samples: (TICKETS[name] ?? []).map((alert) => {
        return { labels: `{alertname="${alert}",severity="ticket"}`, value: 1 }
      }),
    }
    const interval = `${stepSeconds}s`
    const input = weekSeries({ from, until, seed, stepSeconds })
    rulesHold(t, [{ name, interval, input_series: input, promql_expr_test: [fired] }], interval)
    t.end()
  })
}
