import { test } from 'tap'
import { rulesHold } from '../support/alerts/promtool.ts'
import { STEP_SECONDS } from '../support/alerts/week/calendar.ts'
import { HARMS, timesOf } from '../support/alerts/week/harms.ts'
import { weekSeries } from '../support/alerts/week/week.ts'
import { OPERATING_GUIDE } from '../support/deployment/operating-guide.ts'

/** For so long nothing is wrong (minutes). */
const BEFORE = 120
const INTERVAL = `${STEP_SECONDS}s`
const ROWS = [...OPERATING_GUIDE.matchAll(/^\| ([^|]+) \| (Bff\w+) \| ([\d.]+) min\b([^|]*) \|$/gm)].map(
  ([, harm = '', alert = '', minutes = '', more = '']) => ({
    harm,
    alert,
    minutes: Number(minutes),
    severity: more.includes('ticket') ? 'ticket' : 'page',
  }),
)

await test('Each row of the runbook about the time to a page has its harm in the simulated week', (t) => {
  t.same(new Set(ROWS.map(({ harm }) => harm)), new Set(Object.keys(HARMS)))
  t.end()
})

for (const { harm, alert, minutes, severity } of ROWS) {
  await test(`${harm}: a ${severity} after ${minutes} minutes at the latest, and none before`, (t) => {
    const expr = `count(ALERTS{alertname="${alert}",alertstate="firing",severity="${severity}",environment="production"}) > bool 0 or vector(0)`
    const tests = timesOf(harm).map((since) => ({
      name: harm,
      interval: INTERVAL,
      input_series: weekSeries({
        from: since - BEFORE,
        until: since + Math.ceil(minutes) + 1,
        harm: { since, ...HARMS[harm] },
      }),
      promql_expr_test: [
        { expr, eval_time: `${BEFORE * 60 - STEP_SECONDS}s`, exp_samples: [{ labels: '{}', value: 0 }] },
        { expr, eval_time: `${(BEFORE + minutes) * 60}s`, exp_samples: [{ labels: '{}', value: 1 }] },
      ],
    }))
    rulesHold(t, tests, INTERVAL, alert)
    t.end()
  })
}
