import { Counter, Gauge, type Aggregator, type Registry } from 'prom-client'

type Labels = Record<string, string>
/** A value, undefined while there is none, or a value for each combination of labels. */
type Values = number | undefined | readonly (readonly [Labels, number])[]
type Read = () => Values | Promise<Values>

/** Registers a counter that is read only when metrics are scraped, so that counting costs as little as it can. */
export function scrapedCounter(registry: Registry, name: string, help: string, labelNames: string[], read: Read): void {
  registry.registerMetric(new Counter({ name, help, labelNames, registers: [], collect: collector(read) }))
}

/** The same for a gauge. @param aggregator how a supervisor combines the values of its workers */
export function scrapedGauge(
  registry: Registry,
  name: string,
  help: string,
  read: Read,
  aggregator: Aggregator = 'sum',
  labelNames: string[] = [],
): void {
  registry.registerMetric(new Gauge({ name, help, aggregator, labelNames, registers: [], collect: collector(read) }))
}

function collector(read: Read) {
  return async function collect(this: Pick<Gauge, 'reset' | 'remove' | 'inc'>): Promise<void> {
    const values = await read()
    // There is no await from here on: two scrapes at a time would add up.
    this.reset()
    if (values === undefined) this.remove()
    else if (typeof values === 'number') this.inc(values)
    else for (const [labels, value] of values) this.inc(labels, value)
  }
}
