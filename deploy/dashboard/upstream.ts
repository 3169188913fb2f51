import { lines, type Row } from './panels.ts'

/** Calls of upstream's REST API. */
export const UPSTREAM: Row = {
  title: 'Upstream',
  panels: [
    lines({
      title: 'Calls by outcome',
      says: 'A second. Normal: answered, and few refused. unreachable: nothing was sent; timeout, lost and cut: it may have been executed.',
      see: 'runbook.md#bffupstreamfailing',
      unit: 'reqps',
      queries: [
        {
          expr: 'sum by (outcome) (rate(bff_upstream_requests_total{$of}[$__rate_interval]))',
          legend: '{{outcome}}',
        },
      ],
    }),
    lines({
      title: 'Failing routes',
      says: 'Calls a minute that upstream did not answer as it should, by route. One route: its service. All: upstream as a whole.',
      see: 'runbook.md#bffordersrefused',
      unit: 'opm',
      queries: [
        {
          expr: '60 * topk(10, sum by (method, route, outcome) (rate(bff_upstream_requests_total{$of,outcome!~"answered|browserGone|bodyRefused|overBudget"}[$__rate_interval])) > 0)',
          legend: '{{method}} {{route}}: {{outcome}}',
        },
      ],
    }),
    lines({
      title: 'Time until upstream responds, by route',
      says: 'What 99 of 100 calls stay below. Normal: below a second. After 15 s (UPSTREAM_HEADERS_SECONDS) browsers get 504.',
      see: 'runbook.md#bffupstreamslow',
      unit: 's',
      steps: { red: 2.5 },
      queries: [
        {
          expr: 'topk(10, histogram_quantile(0.99, sum by (route, le) (rate(bff_upstream_request_duration_seconds_bucket{$of}[$__rate_interval]))))',
          legend: '{{route}}',
        },
      ],
    }),
    lines({
      title: 'Time of a call, here and upstream',
      says: 'Normal: the two medians are close, and the two p99 as well. The difference is this server, its budget and the browsers.',
      see: 'runbook.md#bffslow',
      unit: 's',
      queries: [
        {
          expr: 'histogram_quantile(0.99, sum by (le) (rate(bff_http_request_duration_seconds_bucket{$of,route=~"/api/.*"}[$__rate_interval])))',
          legend: 'p99 for browsers',
        },
        {
          expr: 'histogram_quantile(0.99, sum by (le) (rate(bff_upstream_request_duration_seconds_bucket{$of}[$__rate_interval])))',
          legend: 'p99 of upstream',
        },
        {
          expr: 'histogram_quantile(0.5, sum by (le) (rate(bff_http_request_duration_seconds_bucket{$of,route=~"/api/.*"}[$__rate_interval])))',
          legend: 'median for browsers',
        },
        {
          expr: 'histogram_quantile(0.5, sum by (le) (rate(bff_upstream_request_duration_seconds_bucket{$of}[$__rate_interval])))',
          legend: 'median of upstream',
        },
      ],
    }),
    lines({
      title: 'API calls by status',
      says: 'A second. Normal: 2xx. Many 401: sessions are lost, or upstream refuses their tokens. 429: a limit, or the budget.',
      see: 'runbook.md#bffcallsunauthorized',
      unit: 'reqps',
      queries: [
        {
          expr: 'sum by (status) (rate(bff_http_request_duration_seconds_count{$of,route=~"/api/.*"}[$__rate_interval]))',
          legend: '{{status}}',
        },
      ],
    }),
    lines({
      title: 'Busiest routes',
      says: 'Calls a second that reach upstream. A page that polls is the first of them.',
      see: 'limits-and-budget.md#the-upstream-budget',
      unit: 'reqps',
      queries: [
        {
          expr: 'topk(10, sum by (method, route) (rate(bff_upstream_requests_total{$of}[$__rate_interval])))',
          legend: '{{method}} {{route}}',
        },
      ],
    }),
  ],
}

/** Calls with an Idempotency-Key. */
export const KEYED_CALLS: Row = {
  title: 'Calls with an Idempotency-Key',
  panels: [
    lines({
      title: 'Keyed calls by outcome',
      says: 'A minute. Normal: answered, and freed when nothing was sent. Many replayed: pages repeat calls, as they should after a loss.',
      see: 'limits-and-budget.md#money-moves-at-most-once',
      unit: 'opm',
      width: 12,
      queries: [
        {
          expr: '60 * sum by (outcome) (rate(bff_idempotency_requests_total{$of}[$__rate_interval]))',
          legend: '{{outcome}}',
        },
      ],
    }),
    lines({
      title: 'Keyed calls whose outcome is unknown',
      says: 'A minute. Normal: none. Ask upstream about each; users who repeat the call get 409 and nothing is sent twice.',
      see: 'runbook.md#an-order-whose-outcome-is-unknown',
      unit: 'opm',
      width: 12,
      steps: { red: 1 },
      queries: [
        {
          expr: '60 * sum by (outcome) (rate(bff_idempotency_requests_total{$of,outcome=~"unknown|repeated_unknown|record_lost"}[$__rate_interval]))',
          legend: '{{outcome}}',
        },
        {
          expr: '60 * sum(rate(bff_session_store_errors_total{$of,kind="unconfirmed"}[$__rate_interval]))',
          legend: 'refused: too few replicas',
        },
      ],
    }),
  ],
}

/** What operators have stopped. */
export const CONTROLS: Row = {
  title: 'Pauses and notices (only with OPS_TOKEN)',
  panels: [
    lines({
      title: 'Pauses in force',
      says: 'Normal: none. all: the orders of all users; subject: of so many single users.',
      see: 'controls.md',
      unit: 'none',
      width: 6,
      steps: { red: 1 },
      queries: [
        { expr: 'max by (scope) (bff_orders_paused{$of})', legend: '{{scope}}' },
        { expr: 'max(bff_notice_shown{$of})', legend: 'notice shown' },
      ],
    }),
    lines({
      title: 'Orders not sent because of a pause',
      says: 'A minute. Normal: none without a pause. During one, what users try.',
      see: 'controls.md#what-stops-and-what-goes-on',
      unit: 'opm',
      width: 6,
      queries: [
        { expr: '60 * sum by (by) (rate(bff_orders_paused_refusals_total{$of}[$__rate_interval]))', legend: '{{by}}' },
      ],
    }),
    lines({
      title: 'Version of the controls, by instance',
      says: 'Normal: one line. An instance that lags for longer than a second does not obey yet: `GET /controls` names it.',
      see: 'controls.md',
      unit: 'none',
      width: 6,
      queries: [{ expr: 'bff_controls_version{$of}', legend: '{{instance}}' }],
    }),
    lines({
      title: 'Changes by operators',
      says: 'In the last hour. Each has a line in the audit log, with its reason.',
      see: 'controls.md#after-it',
      unit: 'none',
      width: 6,
      queries: [
        {
          expr: 'sum by (control, action) (increase(bff_controls_changes_total{$of}[1h]))',
          legend: '{{control}} {{action}}',
        },
      ],
    }),
  ],
}
