import { lines, number, type Row, states } from './panels.ts'

/** What the close codes of a socket mean (docs/frontends.md, How a socket ends). */
const CLOSE_CODES = {
  '1000': '1000 closed by the page, or by upstream',
  '1001': '1001 page left, or upstream restarts',
  '1005': '1005 closed without a code',
  '1009': '1009 message too big',
  '1011': '1011 fault of this server',
  '1012': '1012 drain',
  '1013': '1013 upstream, Redis or the provider',
  '4401': '4401 no session any more',
  '4403': '4403 upstream refuses the account',
  '4404': '4404 no such account',
  '4408': '4408 browser reads too slowly',
  '4429': '4429 a limit, or the budget',
}

const NUMBERS: Row['panels'] = [
  number({
    title: 'Alerts that fire',
    says: 'Normal: none. Each has its own entry in the runbook; begin with those of Redis and of upstream, which cause others.',
    see: 'runbook.md#alerts',
    unit: 'none',
    width: 4,
    steps: { red: 1 },
    queries: [{ expr: 'count(ALERTS{alertname=~"Bff.*",alertstate="firing"}) or vector(0)', legend: 'alerts' }],
  }),
  number({
    title: 'Instances ready',
    says: 'Normal: as many as you run. 0: no user is served. `/readyz` of an instance names its reason.',
    see: 'runbook.md#bffnotready',
    unit: 'none',
    width: 4,
    green: 1,
    queries: [{ expr: 'sum(bff_ready{$of}) or vector(0)', legend: 'ready' }],
  }),
  number({
    title: 'Instances without Redis',
    says: 'Also those without a master of a Cluster. Normal: 0. One: its network. All: Redis itself. Do not restart instances: they reconnect by themselves.',
    see: 'runbook.md#bffstoredown',
    unit: 'none',
    width: 4,
    steps: { red: 1 },
    queries: [{ expr: 'count(bff_session_store_up{$of} < 1) or vector(0)', legend: 'without Redis' }],
  }),
  number({
    title: 'Requests that get a 5xx',
    says: "Share of all requests, upstream's own 5xx included. Normal: below 1 %. The panels below name the causes.",
    see: 'runbook.md#bffservererrors',
    unit: 'percentunit',
    width: 4,
    steps: { orange: 0.01, red: 0.05 },
    queries: [
      {
        expr:
          '(sum(rate(bff_http_request_duration_seconds_count{$of,status=~"5.."}[5m])) or vector(0))' +
          ' / sum(rate(bff_http_request_duration_seconds_count{$of}[5m]))',
        legend: '5xx',
      },
    ],
  }),
  number({
    title: 'One call in a hundred takes longer than',
    says: 'Normal: below a second, and hardly more than upstream needs. If upstream is fast, look at the row Process.',
    see: 'runbook.md#bffslow',
    unit: 's',
    width: 4,
    steps: { orange: 1, red: 2.5 },
    queries: [
      {
        expr: 'histogram_quantile(0.99, sum by (le) (rate(bff_http_request_duration_seconds_bucket{$of,route=~"/api/.*"}[5m])))',
        legend: 'p99',
      },
    ],
  }),
  number({
    title: 'Pauses of orders',
    says: 'Normal: 0. Somebody has stopped the orders of all users, or of single ones: ask before you lift a pause.',
    see: 'controls.md',
    unit: 'none',
    width: 4,
    steps: { orange: 1, red: 1 },
    queries: [{ expr: 'sum(max by (scope) (bff_orders_paused{$of})) or vector(0)', legend: 'paused' }],
  }),
]

/** The only row that is open at first: what is wrong, and for whom. */
export const FIRST_LOOK: Row = {
  title: 'First look',
  panels: [
    ...NUMBERS,
    lines({
      title: 'Requests',
      says: 'By class of status, a second. Normal: the curve of your day. A fall to nothing is a fault in front of the instances.',
      see: 'runbook.md#bfftrafficgone',
      unit: 'reqps',
      queries: [
        {
          expr: 'sum by (class) (label_replace(rate(bff_http_request_duration_seconds_count{$of}[$__rate_interval]), "class", "${1}xx", "status", "(.).*"))',
          legend: '{{class}}',
        },
      ],
    }),
    lines({
      title: 'Errors by cause',
      says: 'A minute. Normal: hardly any. Upstream: ask its operators. Redis and provider: the rows below.',
      see: 'runbook.md#bffupstreamfailing',
      unit: 'opm',
      queries: [
        {
          expr: '60 * sum by (outcome) (rate(bff_upstream_requests_total{$of,outcome=~"unreachable|timeout|lost|cut|server_error|no_descriptor"}[$__rate_interval]))',
          legend: 'upstream: {{outcome}}',
        },
        {
          expr: '60 * sum by (kind) (rate(bff_session_store_errors_total{$of}[$__rate_interval]))',
          legend: 'Redis: {{kind}}',
        },
        {
          expr: '60 * sum by (outcome) (rate(bff_provider_requests_total{$of,outcome!~"ok|refused"}[$__rate_interval]))',
          legend: 'provider: {{outcome}}',
        },
        {
          expr: '60 * sum(rate(bff_http_request_duration_seconds_count{$of,status="500"}[$__rate_interval]))',
          legend: "500: upstream's own, or a fault here",
        },
      ],
    }),
    lines({
      title: 'Orders refused or unknown',
      says: 'A minute. Normal: single ones. Unknown orders may have been executed: ask upstream about each, and repeat none.',
      see: 'runbook.md#an-order-whose-outcome-is-unknown',
      unit: 'opm',
      steps: { red: 10 },
      queries: [
        {
          expr: '60 * sum(rate(bff_upstream_requests_total{$of,method!="GET",outcome=~"timeout|lost|cut|server_error"}[$__rate_interval]))',
          legend: 'unknown',
        },
        {
          expr: '60 * sum(rate(bff_upstream_requests_total{$of,method!="GET",outcome=~"refused|held"}[$__rate_interval]))',
          legend: 'refused by upstream',
        },
        {
          expr: '60 * sum(rate(bff_upstream_requests_total{$of,method!="GET",outcome="limited"}[$__rate_interval]))',
          legend: "over upstream's limit (429)",
        },
        {
          expr: '60 * sum(rate(bff_upstream_budget_calls_total{$of,class="orders",outcome="refused"}[$__rate_interval]))',
          legend: 'over the budget',
        },
        { expr: '60 * sum(rate(bff_orders_paused_refusals_total{$of}[$__rate_interval]))', legend: 'paused' },
      ],
    }),
    lines({
      title: 'Logins by outcome',
      says: 'A minute. Normal: nearly all finished, some access_denied (the user said no).',
      see: 'runbook.md#bffloginsfailing',
      unit: 'opm',
      queries: [
        { expr: '60 * sum by (outcome) (rate(bff_logins_total{$of}[$__rate_interval]))', legend: '{{outcome}}' },
      ],
    }),
    lines({
      title: 'Open sockets',
      says: 'Normal: the curve of your day. A step down on all instances: upstream or the balancer. On one: it was restarted.',
      see: 'runbook.md#bffsocketsfailing',
      unit: 'none',
      queries: [{ expr: 'sum by (kind) (bff_relays{$of})', legend: '{{kind}}' }],
    }),
    lines({
      title: 'Sockets that ended, by cause',
      says: 'A minute, refused ones included. Normal: 1000 and 1001. Many 1013: upstream, Redis or the provider is lost.',
      see: 'runbook.md#bffsocketsfailing',
      unit: 'opm',
      names: CLOSE_CODES,
      queries: [
        { expr: '60 * sum by (code) (rate(bff_relay_endings_total{$of}[$__rate_interval]))', legend: '{{code}}' },
      ],
    }),
    states({
      title: 'Each instance',
      says: 'Normal: ready, and not ready for the seconds of a start or a drain. A gap: it does not respond on its OPS_PORT.',
      see: 'runbook.md#bffinstancedown',
      unit: 'none',
      width: 12,
      green: 1,
      values: { 0: 'not ready', 1: 'ready' },
      queries: [{ expr: 'bff_ready{$of}', legend: '{{instance}}' }],
    }),
    states({
      title: 'Alerts by name',
      says: 'Normal: none. The first to fire is often the cause of the others. It needs the rules of docs/alerts.yaml in this Prometheus.',
      see: 'runbook.md#alerts',
      unit: 'none',
      width: 12,
      steps: { red: 1 },
      values: { 1: 'fires' },
      queries: [
        { expr: 'max by (alertname) (ALERTS{alertname=~"Bff.*",alertstate="firing"})', legend: '{{alertname}}' },
      ],
    }),
  ],
}
