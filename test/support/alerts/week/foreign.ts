/** Exporters of others in the same Prometheus, by series, with their values at each minute. All of them look bad. */
export const FOREIGN: readonly (readonly [series: string, value: (minute: number) => number])[] = [
  ['up{job="node",instance="machine-1"}', () => 1],
  ['up{job="node",instance="machine-2"}', () => 0],
  ['process_start_time_seconds{job="another-app",instance="x"}', (minute) => Math.floor(minute) * 60],
  ['process_open_fds{job="another-app",instance="x"}', () => 1020],
  ['process_max_fds{job="another-app",instance="x"}', () => 1024],
  ['nodejs_eventloop_lag_p99_seconds{job="another-app",instance="x"}', () => 3],
  // Another team's server of this kind.
  ['bff_ready{job="another-bff",instance="y"}', () => 0],
  ['bff_session_store_up{job="another-bff",instance="y"}', () => 0],
  ['bff_log_lines_dropped_total{job="another-bff",instance="y"}', (minute) => Math.floor(minute * 4)],
]
