import type { Table } from './report.ts'

/** Changes that were measured beside this server in the same rounds, and left out since they did not help. */
export const triedInVain: Table = {
  title: 'Tried in vain',
  isText: true,
  columns: ['what', 'against', 'without it', 'with it'],
  rows: [
    [
      '`--no-memory-reducer`',
      'stalls: rounds with a p99 of 40 to 60 ms at half load',
      '4 of 9 rounds',
      '4 of 9 rounds',
    ],
  ],
}
