import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { ALERT_RULES } from '../support/alerts/prometheus.ts'

/** By the minute: two hours, then half an hour in which something happens, then two hours. */
const [BEFORE, MEANWHILE, AFTER] = [120, 30, 120]
/** A series that is there in some of these times. */
const there = (before: boolean, meanwhile: boolean, after: boolean): string =>
  [
    [before, BEFORE],
    [meanwhile, MEANWHILE],
    [after, AFTER],
  ]
    .map(([is, minutes]) => `${is === true ? 1 : '_'}x${Number(minutes) - 1}`)
    .join(' ')

/** What changes these series without a loss of sessions. */
const HARMLESS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'Redis or all instances are away': { 'bff_session_store_info{store="one"': there(true, false, true) },
  'the first instances start': { 'bff_session_store_info{store="one"': there(false, true, true) },
  'a failover loses the newest sessions': {
    'bff_sessions_ended_total{reason="gone"': `0x${BEFORE} 8x${MEANWHILE} 8x${AFTER}`,
  },
  'sessions end for other reasons': {
    'bff_sessions_ended_total{reason="idle"': `0+100x${BEFORE + MEANWHILE + AFTER}`,
    'bff_sessions_ended_total{reason="gone"': `0x${BEFORE + MEANWHILE + AFTER}`,
  },
}

await test('BffSessionsLost does not fire where no sessions are lost', (t) => {
  const tests = Object.entries(HARMLESS).map(([name, series]) => ({
    name,
    interval: '1m',
    input_series: Object.entries(series).map(([each, values]) => ({
      series: `${each},job="trading-bff",environment="production",instance="a"}`,
      values,
    })),
    promql_expr_test: [
      {
        expr: 'count(count_over_time(ALERTS{alertname="BffSessionsLost"}[5h])) or vector(0)',
        eval_time: `${BEFORE + MEANWHILE + AFTER}m`,
        exp_samples: [{ labels: '{}', value: 0 }],
      },
    ],
  }))
  const file = join(t.testdir({}), 'tests.json')
  writeFileSync(file, JSON.stringify({ rule_files: [ALERT_RULES], evaluation_interval: '1m', tests }))
  t.doesNotThrow(() => execFileSync('promtool', ['test', 'rules', file], { stdio: 'pipe' }))
  t.end()
})
