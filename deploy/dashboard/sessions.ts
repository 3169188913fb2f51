import { lines, type Row, states } from './panels.ts'

/** Sessions, their store, and the provider that they come from. */
export const SESSIONS: Row = {
  title: 'Sessions, Redis and the provider',
  panels: [
    lines({
      title: 'Live sessions, estimated',
      says: 'Of all instances together, from 250 random keys. Normal: the curve of your day, and the more jagged, the more orders have keys.',
      see: 'redis.md#redis',
      unit: 'none',
      queries: [{ expr: 'max(bff_sessions_estimate{$of})', legend: 'sessions' }],
    }),
    lines({
      title: 'Sessions that begin and end',
      says: 'A minute. Normal: about as many begin as end over a day. A peak of one reason shows who ended them; gone: Redis lost them.',
      see: 'runbook.md#bffsessionslost',
      unit: 'opm',
      queries: [
        { expr: '60 * sum(rate(bff_sessions_created_total{$of}[$__rate_interval]))', legend: 'begun' },
        {
          expr: '60 * sum by (reason) (rate(bff_sessions_ended_total{$of}[$__rate_interval]))',
          legend: 'ended: {{reason}}',
        },
        {
          expr: '60 * sum(rate(bff_session_ends_unreplicated_total{$of}[$__rate_interval]))',
          legend: 'ended, but no replica knows',
        },
      ],
    }),
    states({
      title: 'Redis, as each instance sees it',
      says: 'Normal: reachable. All red: Redis. One red: the network of that instance. A number: the part of the masters of a Cluster that serve.',
      see: 'runbook.md#bffstoredown',
      unit: 'none',
      green: 1,
      values: { 0: 'away', 1: 'reachable' },
      queries: [{ expr: 'bff_session_store_up{$of}', legend: '{{instance}}' }],
    }),
    lines({
      title: 'Which Redis',
      says: 'Processes by the Redis that they see. Normal: one line. A new line: it was emptied, or is another one.',
      see: 'runbook.md#bffsessionslost',
      unit: 'none',
      queries: [{ expr: 'count by (store) (bff_session_store_info{$of})', legend: '{{store}}' }],
    }),
    lines({
      title: 'Round trips to Redis',
      says: 'Normal: below 5 ms. Requests whose session is cached make none.',
      see: 'redis.md#redis',
      unit: 's',
      steps: { red: 0.25 },
      queries: [
        {
          expr: 'histogram_quantile(0.99, sum by (le) (rate(bff_session_store_request_duration_seconds_bucket{$of}[$__rate_interval])))',
          legend: 'p99',
        },
        {
          expr: 'histogram_quantile(0.5, sum by (le) (rate(bff_session_store_request_duration_seconds_bucket{$of}[$__rate_interval])))',
          legend: 'median',
        },
      ],
    }),
    lines({
      title: 'Memory of Redis',
      says: 'Share of maxmemory; nothing without one. Normal: below 85 %. When it is full, nobody can log in, and calls with an Idempotency-Key get 503.',
      see: 'runbook.md#bffstorenearlyfull',
      unit: 'percentunit',
      steps: { orange: 0.7, red: 0.85 },
      queries: [
        {
          expr: 'max(bff_session_store_memory_used_bytes{$of} / (bff_session_store_memory_max_bytes{$of} > 0))',
          legend: 'used',
        },
      ],
    }),
    lines({
      title: 'Failures of Redis',
      says: 'A minute. Normal: none. Refused writes: full (oom), its disk (misconf), a failover (readonly), no replica.',
      see: 'runbook.md#bffstorerefuseswrites',
      unit: 'opm',
      steps: { red: 1 },
      queries: [
        {
          expr: '60 * sum by (kind) (rate(bff_session_store_errors_total{$of}[$__rate_interval]))',
          legend: '{{kind}}',
        },
        {
          expr: '60 * sum by (reason) (rate(bff_session_store_refused_writes_total{$of}[$__rate_interval]))',
          legend: 'write refused: {{reason}}',
        },
      ],
    }),
    lines({
      title: 'Near cache: share of hits',
      says: 'Normal: above 90 % under load. Less: sessions are used too rarely, or Redis often loses the connection.',
      see: 'redis.md#redis',
      unit: 'percentunit',
      queries: [
        {
          expr:
            'sum(rate(bff_near_cache_lookups_total{$of,outcome="hit"}[$__rate_interval]))' +
            ' / sum(rate(bff_near_cache_lookups_total{$of}[$__rate_interval]))',
          legend: 'hits',
        },
      ],
    }),
    lines({
      title: 'Near cache: memory',
      says: 'By instance. Normal: a few KB for each session in use.',
      see: 'redis.md#redis',
      unit: 'bytes',
      queries: [{ expr: 'bff_near_cache_bytes{$of}', legend: '{{instance}}' }],
    }),
    lines({
      title: 'SESSION_SECRETS in use',
      says: 'Sets of secrets over all instances. Normal: 1, and 2 during a rotation. Else instances log out the users of others.',
      see: 'runbook.md#bffothersecrets',
      unit: 'none',
      steps: { red: 2 },
      queries: [{ expr: 'count(count by (fingerprint) (bff_session_secrets_info{$of}))', legend: 'sets' }],
    }),
    lines({
      title: 'Secrets in files',
      says: 'Settings whose file has a value that cannot be used: normally 0. In use: one each, and one more while a rotation is under way.',
      see: 'runbook.md#bffsecretfilerefused',
      unit: 'none',
      queries: [
        { expr: 'sum(bff_secret_file_refused{$of}) or vector(0)', legend: 'refused' },
        { expr: 'count(count by (setting, fingerprint) (bff_secret_processes{$of})) or vector(0)', legend: 'in use' },
      ],
    }),
  ],
}

/** How users come in. */
export const LOGINS: Row = {
  title: 'Logins and the provider',
  panels: [
    lines({
      title: 'Logins and sign-ups that did not finish',
      says: 'A minute. Normal: some access_denied and state_mismatch. Many state_mismatch: cookies are lost on the way.',
      see: 'runbook.md#bffloginsturnedaway',
      unit: 'opm',
      queries: [
        {
          expr: '60 * sum by (flow, outcome) (rate(bff_logins_total{$of,outcome!="finished"}[$__rate_interval])) > 0',
          legend: '{{flow}}: {{outcome}}',
        },
      ],
    }),
    lines({
      title: 'Requests to the provider',
      says: 'A minute. Normal: ok. failed, timeout, unreachable: it is down; busy: it answers 429; refused: an ended token, or our settings.',
      see: 'runbook.md#bffloginsfailing',
      unit: 'opm',
      queries: [
        {
          expr: '60 * sum by (request, outcome) (rate(bff_provider_requests_total{$of}[$__rate_interval]))',
          legend: '{{request}}: {{outcome}}',
        },
      ],
    }),
    lines({
      title: 'Time until the provider responds',
      says: 'What 99 of 100 requests stay below. Normal: below a second. Logins and refreshes wait for it.',
      see: 'runbook.md#bffrefreshesfailing',
      unit: 's',
      steps: { red: 2.5 },
      queries: [
        {
          expr: 'histogram_quantile(0.99, sum by (request, le) (rate(bff_provider_request_duration_seconds_bucket{$of}[$__rate_interval])))',
          legend: '{{request}}',
        },
      ],
    }),
    lines({
      title: 'Token refreshes by outcome',
      says: 'A minute. Normal: granted, some invalid_grant. unavailable: the provider is down; sessions stay, and calls get 503.',
      see: 'runbook.md#bffrefreshesfailing',
      unit: 'opm',
      queries: [
        {
          expr: '60 * sum by (outcome) (rate(bff_token_refreshes_total{$of}[$__rate_interval]))',
          legend: '{{outcome}}',
        },
        {
          expr: '60 * sum by (by) (rate(bff_token_refreshes_held_back_total{$of}[$__rate_interval]))',
          legend: 'not tried, it has just failed: {{by}}',
        },
        {
          expr: '60 * sum by (code) (rate(bff_provider_refuses_many_total{$of}[$__rate_interval]))',
          legend: 'refused to several users, and granted to none: {{code}}',
        },
      ],
    }),
    lines({
      title: 'OpenID Connect',
      says: 'A minute, only with OIDC. Normal: ended. keys_away, store_away: users stay logged in here; false: a stranger, or clocks that differ.',
      see: 'runbook.md#the-providers-logouts-fail',
      unit: 'opm',
      queries: [
        {
          expr: '60 * sum by (outcome) (rate(bff_backchannel_logouts_total{$of}[$__rate_interval])) or vector(0)',
          legend: 'logout by the provider: {{outcome}}',
        },
        {
          expr: '60 * sum by (why) (rate(bff_identity_claims_left_out_total{$of}[$__rate_interval])) or vector(0)',
          legend: 'claim left out: {{why}}',
        },
      ],
    }),
    states({
      title: 'Refreshes withheld',
      says: 'Normal: no. yes: the provider fails for all, so an instance waits before it asks again.',
      see: 'runbook.md#bffrefreshesfailing',
      unit: 'none',
      steps: { red: 1 },
      values: { 0: 'no', 1: 'yes' },
      queries: [{ expr: 'bff_provider_circuit_open{$of}', legend: '{{instance}}' }],
    }),
    lines({
      title: 'Subjects, and partners',
      says: 'A minute. Normal: found (only with IDENTITY_PATH), and complete links. partial: a link of a partner is broken.',
      see: 'runbook.md#bffidentityfailing',
      unit: 'opm',
      queries: [
        {
          expr: '60 * sum by (outcome) (rate(bff_identity_requests_total{$of}[$__rate_interval]))',
          legend: 'subject: {{outcome}}',
        },
        {
          expr: '60 * sum by (outcome) (rate(bff_attribution_links_total{$of,by="navigation"}[$__rate_interval]))',
          legend: 'link: {{outcome}}',
        },
        {
          expr: '60 * sum by (note) (rate(bff_attribution_notes_total{$of,by="navigation"}[$__rate_interval]))',
          legend: 'mistake in a link: {{note}}',
        },
        {
          expr: '60 * sum by (path) (rate(bff_typed_paths_total{$of}[$__rate_interval]))',
          legend: 'not in lower case: {{path}}',
        },
        {
          expr: '60 * sum by (attributed) (rate(bff_signups_completed_total{$of}[$__rate_interval]))',
          legend: 'sign-up with a partner: {{attributed}}',
        },
      ],
    }),
  ],
}
