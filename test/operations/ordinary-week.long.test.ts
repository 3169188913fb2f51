import { test } from 'tap'
import { rulesHold } from '../support/alerts/promtool.ts'
import { DAYS, minuteOf } from '../support/alerts/week/calendar.ts'
import { weekSeries } from '../support/alerts/week/week.ts'

/** The longest time that an alert looks back and waits, but for a whole day. */
const BEFORE = 240
/** What ordinary life raises in production: one process died on Thursday. */
const TICKETS: Readonly<Record<string, readonly string[]>> = { Thursday: ['BffDied'] }
const seed = Number(process.env['SEED'] ?? 1)
/** The guide says 15; then a week takes ten minutes and more. */
const stepSeconds = Number(process.env['STEP_SECONDS'] ?? 60)

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
