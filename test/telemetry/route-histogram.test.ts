import { Histogram, Registry } from 'prom-client'
import { test } from 'tap'
import { RouteHistogram } from '../../src/telemetry/route-histogram.ts'

const BUCKETS = [0.005, 0.5, 30]
const name = 'seconds'
const labelNames = ['method', 'route', 'status'] as const
const help = 'Duration in seconds'

await test('RouteHistogram exports the same text and JSON as a histogram of prom-client', async (t) => {
  const registry = new Registry()
  const histogram = new RouteHistogram({ name, help, labelNames, buckets: BUCKETS, registers: [registry] })
  const reference = new Registry()
  const expected = new Histogram({ name, help, labelNames, buckets: BUCKETS, registers: [reference] })
  t.equal(await registry.metrics(), await reference.metrics(), 'the exports are equal before the first observation')
  for (const seconds of [0, 0.005, 0.0051, 0.5, 1, 30, 30.1]) {
    for (const route of ['/a', '/b "quoted"']) {
      for (const labels of [{ method: 'GET' }, { method: 'GET', status: 200 }, { method: 'POST', status: 502 }]) {
        histogram.add(route, labels, seconds)
        const { method, ...status } = labels
        expected.observe({ method, route, ...status }, seconds)
      }
    }
  }
  // The order of the lines differs: RouteHistogram keeps the series of a route together.
  t.same(sortedLines(await registry.metrics()), sortedLines(await reference.metrics()))
  t.same(await sortedSamples(registry), await sortedSamples(reference))
})

/** The sorted lines of a text. */
function sortedLines(text: string): string[] {
  return text.split('\n').toSorted()
}

/** The sorted samples of the JSON export. */
async function sortedSamples(registry: Registry): Promise<string[]> {
  const [metric] = await registry.getMetricsAsJSON()
  const all = (metric as unknown as { values: { labels: object; value: number; metricName: string }[] }).values
  return all
    .map(
      ({ labels, value, metricName }) =>
        `${metricName} ${sortedLines(JSON.stringify(labels, undefined, 1)).join()} ${value}`,
    )
    .toSorted()
}
