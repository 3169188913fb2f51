import type { Table } from './report.ts'

/** Changes that were measured beside this server in the same rounds, and left out since they did not help. */
export const triedInVain: Table = {
  title: 'Tried in vain',
  isText: true,
  columns: ['what', 'against', 'without it', 'with it'],
  rows: [
    [
      '`--no-concurrent-marking`, beside `--v8-pool-size=1`',
      'stalls: p99.9 of 34 rounds at half load',
      '62.5 ms',
      '67.6 ms',
    ],
    [
      'CPU times corrected by the speed of the machine, measured by a fixed computation',
      'bench: standard deviation of 24 rounds of a GET',
      '18.3 %',
      '18.2 %',
    ],
    [
      'A logger for each request that is made when it is first used',
      'rest: CPU time of a GET, 50 rounds of both together',
      '1',
      '1.015',
    ],
    [
      "A second probe of the machine's speed, of low priority, on the measured processor",
      'latency: p50 at half load of the bare proxy',
      '0.6 ms',
      '1.6 ms',
    ],
    ['Only those modules of undici that are used', 'start: time to ready, median of 20', '487 ms', '502 ms'],
    ['The Redis client bundled into one file', 'start: time to ready, median of 15', '438 ms', '418 ms'],
    [
      "V8's thread at the lowest priority (nice 19), so that it compiles only when nothing else is to do",
      'busy: requests/s that keep one processor half busy, 10 s after the start, two runs each',
      '2,254 and 2,187',
      '653 and 1,238',
    ],
    [
      "V8's thread at a slightly lower priority (nice 5)",
      'latency: pooled p99 of the first 3 s after a start, at 2,400 requests/s on one processor, 10 starts each',
      '160 ms',
      '172 ms',
    ],
    [
      '`--always-sparkplug`, to leave the interpreter at once',
      'latency: pooled p99 of the first 3 s after a start, at 2,400 requests/s on one processor, 4 starts each',
      '205 ms',
      '192 ms',
    ],
    ['`--single-threaded-gc`', 'stalls: median pause of the major collections in 20 rounds', '11 ms', '80 ms'],
  ],
}
