import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { ALERT_RULES } from '../support/alerts/prometheus.ts'
import { OPERATING_GUIDE } from '../support/deployment/operating-guide.ts'

/** Prometheus asks and evaluates every quarter of a minute. */
const A_MINUTE = 4
/** All is well for two hours, and then the harm begins. */
const BEFORE = 120 * A_MINUTE
const AFTER = 60 * A_MINUTE

/** A gauge that had one value, and has another since the harm began. */
const gauge = (before: string, after: string): string => `${before}x${BEFORE} ${after}x${AFTER}`
/** A counter that grows by so much a minute. */
const counter = (before: number, after: number): string => {
  const [first, then] = [before / A_MINUTE, after / A_MINUTE]
  return `0+${first}x${BEFORE} ${first * BEFORE + then}+${then}x${AFTER}`
}
/** A counter that grows by one every so many minutes. */
const rarely = (minutes: number): string => {
  const steps = Array.from({ length: AFTER }, (_, step) => Math.floor(step / (minutes * A_MINUTE)))
  return `0x${BEFORE} ${steps.join(' ')}`
}
const histogram = (before: number, after: number): [string, string][] =>
  ['1', '2.5', '5', '10', '+Inf'].map((le) => {
    const slow = Number(le) >= 10 || le === '+Inf'
    return [`bff_upstream_request_duration_seconds_bucket{route="/r",le="${le}"`, counter(before, slow ? after : 0)]
  })

/** For each row of the table in the runbook, the series of its harm. */
const HARMS: Readonly<Record<string, readonly (readonly [series: string, values: string])[]>> = {
  'Redis is gone, or does not allow what is needed': [['bff_session_store_up{', gauge('1', '0')]],
  'Redis refuses writes': [['bff_session_store_refused_writes_total{', counter(0, 4)]],
  'Redis loses the sessions of forty users a minute': [['bff_sessions_ended_total{reason="gone"', counter(0, 40)]],
  'Redis and all instances start anew, and Redis is empty': [
    ['bff_session_store_info{store="old"', `1x${BEFORE} _x${AFTER}`],
    ['bff_session_store_info{store="new"', `_x${BEFORE} 1x${AFTER}`],
  ],
  'no instance responds': [['bff_ready{', `1x${BEFORE} _x${AFTER}`]],
  'the provider fails every login, ten a minute': [
    ['bff_logins_total{flow="login",outcome="finished"', counter(10, 0)],
    ['bff_logins_total{flow="login",outcome="provider_unavailable"', counter(0, 10)],
  ],
  'the provider fails every login, one in ten minutes': [
    ['bff_logins_total{flow="login",outcome="finished"', `0x${BEFORE + AFTER}`],
    ['bff_logins_total{flow="login",outcome="provider_unavailable"', rarely(10)],
  ],
  'the provider refuses this client': [['bff_logins_total{outcome="invalid_client"', counter(0, 4)]],
  'upstream fails a tenth of the calls': [
    ['bff_upstream_requests_total{route="/r",outcome="ok"', counter(600, 540)],
    ['bff_upstream_requests_total{route="/r",outcome="server_error"', counter(0, 60)],
  ],
  'upstream takes 5 s for each call': [
    ...histogram(600, 600),
    ['bff_upstream_request_duration_seconds_count{route="/r"', counter(600, 600)],
  ],
  'upstream refuses all orders': [
    ['bff_upstream_requests_total{route="/r",method="POST",outcome="ok"', counter(10, 0)],
    ['bff_upstream_requests_total{route="/r",method="POST",outcome="refused"', counter(0, 10)],
  ],
  'the shared feed has lost upstream': [
    ['bff_feed_upstream_sockets{', gauge('2', '0')],
    ['bff_feed_retrying_sockets{', gauge('0', '2')],
  ],
  'an instance is not ready': [['bff_ready{', gauge('1', '0')]],
  'an instance dies every minute': [
    [
      'process_start_time_seconds{',
      `1x${BEFORE} ${Array.from({ length: AFTER }, (_, step) => 2 + Math.floor(step / A_MINUTE)).join(' ')}`,
    ],
  ],
  'no request arrives any more': [['bff_http_request_duration_seconds_count{route="/api/r"', counter(600, 0)]],
}

/** The time of a test so many minutes after the harm began. */
const at = (after: number): string => `${(BEFORE / A_MINUTE + after) * 60}s`

await test('The runbook says truly for each harm how long it lasts at most until somebody is woken', (t) => {
  const rows = [...OPERATING_GUIDE.matchAll(/^\| ([^|]+) \| (Bff\w+) \| ([\d.]+) min\b[^|]* \|$/gm)]
  t.same(new Set(rows.map(([, harm]) => harm)), new Set(Object.keys(HARMS)), 'each row has its harm here')
  const tests = rows.map(([, harm = '', alert = '', minutes = '']) => {
    const expr = `count(ALERTS{alertname="${alert}",alertstate="firing",severity="page",environment="production"}) or vector(0)`
    return {
      name: harm,
      interval: '15s',
      input_series: (HARMS[harm] ?? []).map(([series, values]) => ({
        series: `${series}${series.endsWith('{') ? '' : ','}job="trading-bff",environment="production",instance="a"}`,
        values,
      })),
      promql_expr_test: [
        { expr, eval_time: at(0), exp_samples: [{ labels: '{}', value: 0 }] },
        { expr, eval_time: at(Number(minutes)), exp_samples: [{ labels: '{}', value: 1 }] },
      ],
    }
  })
  const file = join(t.testdir({}), 'tests.json')
  writeFileSync(file, JSON.stringify({ rule_files: [ALERT_RULES], evaluation_interval: '15s', tests }))
  t.doesNotThrow(() => execFileSync('promtool', ['test', 'rules', file], { stdio: 'pipe' }))
  t.end()
})
