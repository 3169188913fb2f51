import { lines, type Row } from './panels.ts'

/** Calls that upstream allows all instances together. */
export const BUDGET: Row = {
  title: 'Upstream budget (only with UPSTREAM_BUDGET)',
  panels: [
    lines({
      title: 'Share of the budget that is left',
      says: 'By window in seconds. Normal: above 15 %. Reads are refused first, orders last. No value: Redis is away.',
      see: 'runbook.md#bffbudgetnearlyused',
      unit: 'percentunit',
      green: 0.15,
      queries: [
        {
          expr: 'min by (window) (bff_upstream_budget_left{$of}) / max by (window) (bff_upstream_budget_limit{$of})',
          legend: 'window of {{window}} s',
        },
      ],
    }),
    lines({
      title: 'Calls by class and outcome',
      says: 'A minute. Normal: granted. Refused reads: pages poll too much. Refused orders wake a person up.',
      see: 'runbook.md#bffbudgetrefusesorders',
      unit: 'opm',
      queries: [
        {
          expr: '60 * sum by (class, outcome) (rate(bff_upstream_budget_calls_total{$of}[$__rate_interval]))',
          legend: '{{class}}: {{outcome}}',
        },
      ],
    }),
    lines({
      title: 'Users whom upstream limits',
      says: 'Normal: none, or single ones. Held back 1: all users wait, since upstream refuses everybody.',
      see: 'runbook.md#bffbudgetheldback',
      unit: 'none',
      steps: { red: 4 },
      queries: [
        { expr: 'max by (class) (bff_upstream_limited_users{$of})', legend: 'users: {{class}}' },
        { expr: 'max by (class) (bff_upstream_budget_held_back{$of})', legend: 'held back: {{class}}' },
      ],
    }),
    lines({
      title: 'Calls refused to limited users',
      says: 'A minute: not sent, because upstream has just answered 429 to the same user.',
      see: 'limits-and-budget.md#when-upstream-answers-429-all-the-same',
      unit: 'opm',
      queries: [
        {
          expr: '60 * sum by (class) (rate(bff_upstream_limit_refusals_total{$of}[$__rate_interval]))',
          legend: '{{class}}',
        },
      ],
    }),
    lines({
      title: 'Calls that instances hold in advance',
      says: 'Taken from the budget and not used yet, all instances together.',
      see: 'limits-and-budget.md#what-it-costs',
      unit: 'none',
      queries: [{ expr: 'sum by (class) (bff_upstream_budget_leased{$of})', legend: '{{class}}' }],
    }),
    lines({
      title: 'Without the budget in Redis',
      says: 'Normal: 0 instances. Such an instance sends only its part of the calls that are set aside.',
      see: 'runbook.md#bffbudgetrefusesorders',
      unit: 'none',
      steps: { red: 1 },
      queries: [
        { expr: 'sum(bff_upstream_budget_alone{$of})', legend: 'instances' },
        {
          expr: '60 * sum(rate(bff_upstream_budget_alone_calls_total{$of}[$__rate_interval]))',
          legend: 'calls a minute',
        },
      ],
    }),
  ],
}

/** Each instance as a process. */
export const PROCESS: Row = {
  title: 'Process',
  panels: [
    lines({
      title: 'CPU',
      says: 'Cores, by instance. Normal: alike, and below 0.6 in the busiest hour, so that others can take over.',
      see: 'install.md#scaling',
      unit: 'none',
      steps: { orange: 0.6, red: 0.9 },
      queries: [{ expr: 'rate(process_cpu_seconds_total{$of}[$__rate_interval])', legend: '{{instance}}' }],
    }),
    lines({
      title: 'Delay of the event loop',
      says: 'By instance, 99 of 100 measurements; 0.05 s is none. With a high CPU usage: too much load. Without: a CPU limit, or swapping.',
      see: 'runbook.md#bffeventlooplag',
      unit: 's',
      steps: { orange: 0.15, red: 0.25 },
      queries: [{ expr: 'nodejs_eventloop_lag_p99_seconds{$of}', legend: '{{instance}}' }],
    }),
    lines({
      title: 'Memory',
      says: 'By instance. Normal: what the formula says for its sockets. Compare with the limit of the container.',
      see: 'sizing.md#memory-of-an-instance',
      unit: 'bytes',
      queries: [{ expr: 'process_resident_memory_bytes{$of}', legend: '{{instance}}' }],
    }),
    lines({
      title: 'Garbage collection',
      says: 'Share of the time, by instance. Normal: below 5 %. More: the heap is nearly full.',
      see: 'runbook.md#bffeventlooplag',
      unit: 'percentunit',
      steps: { red: 0.1 },
      queries: [
        {
          expr: 'sum by (instance) (rate(nodejs_gc_duration_seconds_sum{$of}[$__rate_interval]))',
          legend: '{{instance}}',
        },
      ],
    }),
    lines({
      title: 'Share of the file descriptors in use',
      says: 'By instance. Normal: below 80 %. At the limit new connections fail, and so do calls.',
      see: 'runbook.md#bffdescriptors',
      unit: 'percentunit',
      steps: { red: 0.8 },
      queries: [{ expr: 'process_open_fds{$of} / process_max_fds{$of}', legend: '{{instance}}' }],
    }),
    lines({
      title: 'Restarts, silent workers, unhandled errors, and lines of the log that were lost',
      says: 'All but silent workers are those of the last quarter of an hour. Normal: none, and one restart in a roll.',
      see: 'runbook.md#bffrestarting',
      unit: 'none',
      steps: { red: 3 },
      queries: [
        { expr: 'changes(process_start_time_seconds{$of}[15m])', legend: 'restarts: {{instance}}' },
        { expr: 'increase(bff_worker_restarts_total{$of}[15m])', legend: 'workers: {{instance}}' },
        { expr: 'bff_workers_silent{$of}', legend: 'silent: {{instance}}' },
        { expr: 'sum(increase(bff_unhandled_rejections_total{$of}[15m]))', legend: 'unhandled errors' },
        { expr: 'sum(increase(bff_log_lines_dropped_total{$of}[15m]))', legend: 'lines lost' },
      ],
    }),
    lines({
      title: 'Lines of the log that wait',
      says: 'By instance; with WORKERS that of the worst process. Normal: below 100 kB. At 16 MiB lines are dropped.',
      see: 'runbook.md#bffloghangs',
      unit: 'bytes',
      steps: { red: 4_194_304 },
      queries: [{ expr: 'bff_log_waiting_bytes{$of}', legend: '{{instance}}' }],
    }),
    lines({
      title: 'Instances by version',
      says: 'Normal: one version, and two during a roll.',
      see: 'rotation-and-upgrades.md#restart-upgrade-go-back',
      unit: 'none',
      queries: [
        {
          expr: 'count by (version, revision, node) (bff_build_info{$of})',
          legend: '{{version}} ({{revision}}) on Node {{node}}',
        },
      ],
    }),
  ],
}
