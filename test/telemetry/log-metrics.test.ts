import { AggregatorRegistry } from 'prom-client'
import { test } from 'tap'
import { createMetrics, createSupervisorMetrics } from '../../src/telemetry/metrics.ts'

await test('bff_log_waiting_bytes of a supervisor is that of the worst process, and lost lines are summed', async (t) => {
  const registries = [
    createSupervisorMetrics({ droppedLines: 1, waitingBytes: 5 }),
    createMetrics({ droppedLines: 2, waitingBytes: 7 }),
    createMetrics({ droppedLines: 3, waitingBytes: 6 }),
  ]
  const all = await Promise.all(registries.map(({ registry }) => registry.getMetricsAsJSON()))
  const text = await AggregatorRegistry.aggregate(all).metrics()
  t.match(text, '\nbff_log_waiting_bytes 7\n')
  t.match(text, '\nbff_log_lines_dropped_total 6\n')
})
