import type { Scenario } from './scrapes.ts'

/** The job of our instances in Prometheus. */
const OURS = 'trading-bff'
/** For how long a scenario is played, in minutes. Its last third is the time of {@link Scenario} `later`. */
const MINUTES = 90

/** Another environment in the same Prometheus, where all is well and much goes on. It must hide nothing. */
const STAGING = [
  ['up', '', '1x90'],
  ['bff_ready', '', '1x90'],
  ['bff_session_store_up', '', '1x90'],
  ['bff_sessions_ended_total', 'reason="gone"', '0x90'],
  ['bff_http_request_duration_seconds_count', 'route="/api/x",method="GET",status="200"', '0+60000x90'],
  ['bff_upstream_requests_total', 'route="/api/x",method="GET",outcome="ok"', '0+60000x90'],
  ['bff_upstream_requests_total', 'route="/api/x",method="POST",outcome="ok"', '0+60000x90'],
  ['bff_logins_total', 'flow="login",outcome="finished"', '0+6000x90'],
  ['bff_token_refreshes_total', 'outcome="granted"', '0+6000x90'],
  ['bff_relays', 'kind="public"', '5000x90'],
  ['bff_relays', 'kind="demo"', '5000x90'],
  ['bff_relay_limit', '', '100000x90'],
  ['bff_relay_messages_total', 'direction="to_browser"', '0+600000x90'],
].map(([name, labels, values]) => ({
  series: `${name}{${labels === '' ? '' : `${labels},`}job="trading-bff",environment="staging",instance="s"}`,
  values,
}))

/**
 * A test in promtool's format: which alerts fire within ninety minutes of a scenario, and that no other does.
 * @param metrics the names of the series that the alerts use
 * @param job to which the instances of the scenario belong; staging is always of ours
 */
export function ruleTest(
  { name, raises, scrapes, happensOnce = false }: Scenario,
  metrics: ReadonlySet<string>,
  job = OURS,
): object {
  const play = { metrics, happensOnce, job }
  const fired = {
    expr: `group by (alertname) (count_over_time(ALERTS{alertstate="firing"}[${MINUTES}m]))`,
    eval_time: `${MINUTES}m`,
    exp_samples: (job === OURS ? raises : []).map((alert) => ({ labels: `{alertname="${alert}"}`, value: 1 })),
  }
  return {
    name,
    interval: '1m',
    input_series: [
      ...STAGING,
      ...Object.entries(scrapes).flatMap(([instance, scraped]) => seriesOf(instance, scraped, play)),
    ],
    promql_expr_test: [fired],
  }
}

/** The name of the metric that a series belongs to; the series of a histogram have suffixes. */
export function baseOf(name: string): string {
  return name.replace(/_(bucket|count|sum)$/, '')
}

/**
 * The input series of an instance. A counter grows every minute by as much as between the two scrapes, or once; a gauge
 * changes after half an hour. After an hour both follow the scrape `later`, where there is one.
 */
function seriesOf(
  instance: string,
  { before, after, later }: Scenario['scrapes'][string],
  {
    metrics,
    happensOnce,
    job,
  }: { readonly metrics: ReadonlySet<string>; readonly happensOnce: boolean; readonly job: string },
): object[] {
  const types = new Map([...after.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name, type]) => [name, type]))
  const earlier = before === undefined ? undefined : samples(before)
  const last = later === undefined ? undefined : samples(later)
  return [...samples(after)].flatMap(([series, value]) => {
    const [, name = '', labels = ''] = /^(\w+)(?:\{(.*)\})?$/.exec(series) ?? []
    if (!metrics.has(name)) return []
    const isGauge = (types.get(name) ?? types.get(baseOf(name))) === 'gauge'
    const label = `${labels === '' ? '' : `${labels},`}job="${job}",environment="production",instance="${instance}"`
    const values = (text: string): object[] => [{ series: `${name}{${label}}`, values: text }]
    // An instance without an earlier scrape appears in the thirty-first minute.
    if (earlier === undefined) return values(name === 'up' ? `${value}x${MINUTES}` : `_x30 ${value}x60`)
    const old = earlier.get(series)
    if (isGauge) return values(old === undefined ? `${value}x${MINUTES}` : `${old}x30 ${value}x59`)
    const growth = value - (old ?? 0)
    if (happensOnce) return values(`0x30 ${growth}x59`)
    if (last === undefined) return values(`0+${growth}x${MINUTES}`)
    return values(`0+${growth}x59 ${rest(value, last.get(series), growth * 60)}`)
  })
}

/** The last half hour of a counter, which a restarted instance begins anew or does not have yet. */
function rest(value: number, later: number | undefined, reached: number): string {
  if (later === undefined) return '_x30'
  return later < value ? `${later}x30` : `${reached}+${later - value}x30`
}

/** The samples of a scrape by series. */
function samples(text: string): Map<string, number> {
  const lines = [...text.matchAll(/^(\w+(?:\{.*\})?) (\S+)$/gm)]
  return new Map(lines.map(([, series = '', value = '']) => [series, Number(value)]))
}
