import { Histogram, Registry } from 'prom-client'
import { test } from 'tap'
import { RouteHistogram } from '../../src/telemetry/route-histogram.ts'

const BUCKETS = [0.005, 0.5, 30]
const name = 'seconds'
const labelNames = ['method', 'route', 'status'] as const
const help = 'How long it took'

await test('it exports what prom-client would, as text and as JSON', async (t) => {
  const registry = new Registry()
  const histogram = new RouteHistogram({ name, help, labelNames, buckets: BUCKETS, registers: [registry] })
  const reference = new Registry()
  const expected = new Histogram({ name, help, labelNames, buckets: BUCKETS, registers: [reference] })
  t.equal(await registry.metrics(), await reference.metrics(), 'before anything was counted')
  for (const seconds of [0, 0.005, 0.0051, 0.5, 1, 30, 30.1]) {
    for (const route of ['/a', '/b "quoted"']) {
      for (const labels of [
        { method: 'GET' },
        { method: 'GET', status: 200 },
        { method: 'POST', status: 502 },
      ]) {
        histogram.add(route, labels, seconds)
        const { method, ...status } = labels
        expected.observe({ method, route, ...status }, seconds)
      }
    }
  }
  // The same lines; in another order, each route's series together.
  t.same(lines(await registry.metrics()), lines(await reference.metrics()))
  t.same(await values(registry), await values(reference))
})

/** A text's lines, in no order. */
function lines(text: string): string[] {
  return text.split('\n').toSorted()
}

/** What the JSON says, in no order. */
async function values(registry: Registry): Promise<string[]> {
  const [metric] = await registry.getMetricsAsJSON()
  const all = (metric as unknown as { values: { labels: object; value: number; metricName: string }[] })
    .values
  return all
    .map(
      ({ labels, value, metricName }) =>
        `${metricName} ${lines(JSON.stringify(labels, undefined, 1)).join()} ${value}`,
    )
    .toSorted()
}
