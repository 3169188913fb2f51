import { lines, type Row } from './panels.ts'

/** What all browser sockets share. */
export const SOCKETS: Row = {
  title: 'Sockets',
  panels: [
    lines({
      title: 'Share of MAX_RELAYS in use',
      says: 'By instance. Normal: below 80 %, and alike. An instance that was restarted gets new sockets first.',
      see: 'runbook.md#bffrelaysnearlimit',
      unit: 'percentunit',
      steps: { red: 0.8 },
      queries: [
        {
          expr: 'sum by (instance) (bff_relays{$of}) / sum by (instance) (bff_relay_limit{$of})',
          legend: '{{instance}}',
        },
      ],
    }),
    lines({
      title: 'Refused handshakes by reason',
      says: 'A minute. Normal: some without a session. upstream_…: its WebSocket service. too_many_relays, rate_limited: one client, or TRUST_PROXY is wrong.',
      see: 'runbook.md#bffsocketsturnedaway',
      unit: 'opm',
      queries: [
        {
          expr: '60 * sum by (reason) (rate(bff_relay_refusals_total{$of}[$__rate_interval]))',
          legend: '{{reason}}',
        },
        {
          expr: '60 * sum(rate(bff_refused_origins_total{$of}[$__rate_interval]))',
          legend: 'a page of another origin, calls included',
        },
      ],
    }),
    lines({
      title: 'Messages',
      says: 'A second. Normal: the curve of the market. None to browsers while sockets are open: prices stand still.',
      see: 'runbook.md#bffsocketsfailing',
      unit: 'mps',
      queries: [
        { expr: 'sum by (direction) (rate(bff_relay_messages_total{$of}[$__rate_interval]))', legend: '{{direction}}' },
      ],
    }),
    lines({
      title: 'Bytes of messages',
      says: 'A second. Compare with what the network of an instance can carry.',
      see: 'install.md#scaling',
      unit: 'Bps',
      queries: [
        { expr: 'sum by (direction) (rate(bff_relay_bytes_total{$of}[$__rate_interval]))', legend: '{{direction}}' },
      ],
    }),
    lines({
      title: 'Bytes that wait for slow readers',
      says: 'By instance. Normal: near 0. If it grows on all: upstream sends more than browsers read. At MAX_WAITING_BYTES the slowest are closed.',
      see: 'runbook.md#bffsocketsclosedformemory',
      unit: 'bytes',
      queries: [
        { expr: 'bff_relay_buffered_bytes{$of}', legend: '{{instance}}' },
        { expr: 'bff_relay_buffered_limit_bytes{$of}', legend: '{{instance}}, limit' },
      ],
    }),
    lines({
      title: 'Sockets closed for memory',
      says: 'A minute, by kind. Normal: 0. Too much waited for browsers that read slowly, so the slowest were closed.',
      see: 'runbook.md#bffsocketsclosedformemory',
      unit: 'opm',
      queries: [
        {
          expr: '60 * sum by (kind) (rate(bff_relay_closed_for_memory_total{$of}[$__rate_interval]))',
          legend: '{{kind}}',
        },
      ],
    }),
    lines({
      title: 'What browsers ask for',
      says: 'Messages of browsers a minute, by operation: the ten most frequent.',
      see: 'limits-and-budget.md#limits-over-all-instances',
      unit: 'opm',
      queries: [
        {
          expr: 'topk(10, 60 * sum by (operation) (rate(bff_relay_operations_total{$of}[$__rate_interval])))',
          legend: '{{operation}}',
        },
      ],
    }),
  ],
}

/** The shared feed of market data. */
export const FEED: Row = {
  title: 'Shared feed (only with PUBLIC_FEED=shared)',
  panels: [
    lines({
      title: 'Upstream sockets of the feed',
      says: 'Normal: some are open while browsers watch prices, none is retried. Open 0 and retried: prices stand still.',
      see: 'runbook.md#bfffeeddown',
      unit: 'none',
      queries: [
        { expr: 'sum(bff_feed_upstream_sockets{$of})', legend: 'open' },
        { expr: 'sum(bff_feed_retrying_sockets{$of})', legend: 'lost, and tried again' },
        { expr: 'sum(bff_feed_own_sockets{$of})', legend: 'for one browser each' },
      ],
    }),
    lines({
      title: 'Losses of upstream',
      says: 'In the last half hour. Normal: none. Regular ones: upstream ends shared sockets, perhaps for a limit.',
      see: 'runbook.md#bfffeedunstable',
      unit: 'none',
      steps: { red: 3 },
      queries: [
        { expr: 'sum(increase(bff_feed_reconnects_total{$of}[30m]))', legend: 'opened again' },
        { expr: 'sum(increase(bff_feed_refused_resubscriptions_total{$of}[30m]))', legend: 'subscriptions refused' },
        { expr: 'sum(increase(bff_feed_unattributed_messages_total{$of}[30m]))', legend: 'messages without a request' },
      ],
    }),
    lines({
      title: 'Share of the limits in use',
      says: 'Of the fullest instance. Normal: below 80 %. At the limit browsers get RateLimit.',
      see: 'runbook.md#bfffeednearlimit',
      unit: 'percentunit',
      steps: { red: 0.8 },
      queries: [
        { expr: 'max(bff_feed_taken_places{$of} / bff_feed_stream_limit{$of})', legend: 'places for streams' },
        { expr: 'max(bff_feed_own_sockets{$of} / (bff_feed_own_socket_limit{$of} > 0))', legend: 'own sockets' },
      ],
    }),
    lines({
      title: 'Streams, and who watches them',
      says: 'Normal: many more subscriptions than streams, or the feed shares nothing.',
      see: 'limits-and-budget.md#the-shared-feed',
      unit: 'none',
      queries: [
        { expr: 'sum(bff_feed_subscribers{$of})', legend: 'subscriptions of browsers' },
        { expr: 'sum(bff_feed_streams{$of})', legend: 'streams' },
      ],
    }),
    lines({
      title: 'Requests that needed none upstream',
      says: 'A second, by operation. The more, the better.',
      see: 'limits-and-budget.md#the-shared-feed',
      unit: 'reqps',
      queries: [
        {
          expr: 'sum by (operation) (rate(bff_feed_cache_hits_total{$of}[$__rate_interval]))',
          legend: '{{operation}}',
        },
      ],
    }),
    lines({
      title: 'Messages that slow browsers missed',
      says: 'Share of those that arrive; a newer price replaced each. Normal: below a tenth.',
      see: 'runbook.md#bfffeedconflating',
      unit: 'percentunit',
      steps: { red: 0.1 },
      queries: [
        {
          expr:
            'sum by (instance) (rate(bff_feed_conflated_messages_total{$of}[$__rate_interval]))' +
            ' / sum by (instance) (rate(bff_relay_messages_total{$of,direction="to_browser"}[$__rate_interval]))',
          legend: '{{instance}}',
        },
      ],
    }),
  ],
}
