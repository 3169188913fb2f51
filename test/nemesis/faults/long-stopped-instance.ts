import type { Fault } from '../fault.ts'
import { stoppedInstance } from './stopped-instance.ts'

/** An instance stands still for longer than its open sockets may go without Redis. */
export const longStoppedInstance: Fault = {
  ...stoppedInstance,
  name: 'long-stopped-instance',
  sentence:
    'All processes of one instance stand still for longer than RELAY_STORE_GRACE_SECONDS and the leases of the budget.',
  fits: ({ settings }) => settings['RELAY_STORE_GRACE_SECONDS'] !== undefined,
  lastsMs: { least: 9000, most: 20_000 },
}
