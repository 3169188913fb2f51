import { Counter, Gauge, Histogram, type Aggregator, type Registry } from 'prom-client'

type Labels = Record<string, string>
/** A value, undefined while there is none, or a value for each combination of labels. */
type Values = number | undefined | readonly (readonly [Labels, number])[]
type Read = () => Values | Promise<Values>

/** Creates metrics in a registry. The aggregator of a gauge tells how a supervisor combines the values of its workers. */
export class Instruments {
  readonly registry: Registry

  constructor(registry: Registry) {
    this.registry = registry
  }

  counter<Label extends string>(name: string, help: string, labelNames: Label[] = []): Counter<Label> {
    return new Counter({ name, help, labelNames, registers: [this.registry] })
  }

  /** Counts from the start in every series, since an alert on an increase would miss the first event of a new one. */
  counterFrom0<Label extends string>(
    name: string,
    help: string,
    series: readonly Record<Label, string>[],
  ): Counter<Label> {
    const counter = this.counter(name, help, Object.keys(series[0] ?? {}) as Label[])
    for (const labels of series) counter.inc(labels, 0)
    return counter
  }

  gauge<Label extends string>(name: string, help: string, labelNames: Label[] = []): Gauge<Label> {
    return new Gauge({ name, help, labelNames, registers: [this.registry] })
  }

  /** A gauge that is always 1: its labels tell what every process of a server has in common. */
  info(name: string, help: string, labels: Labels): void {
    const labelNames = Object.keys(labels)
    new Gauge({ name, help, labelNames, aggregator: 'first', registers: [this.registry] }).set(labels, 1)
  }

  histogram<Label extends string>(
    name: string,
    help: string,
    buckets: number[],
    labelNames: Label[] = [],
  ): Histogram<Label> {
    return new Histogram({ name, help, buckets, labelNames, registers: [this.registry] })
  }

  /** A counter with one label, for what is counted with every message. @returns counts an event under a value of the label */
  tally(name: string, help: string, label: string): (value: string) => void {
    const counts = new Map<string, number>()
    const read = () => [...counts].map(([value, count]) => [{ [label]: value }, count] as const)
    this.scrapedCounter(name, help, read, [label])
    return (value) => void counts.set(value, (counts.get(value) ?? 0) + 1)
  }

  /** A counter that is read only when metrics are scraped, so that counting costs as little as it can. */
  scrapedCounter(name: string, help: string, read: Read, labelNames: string[] = []): void {
    this.registry.registerMetric(new Counter({ name, help, labelNames, registers: [], collect: collector(read) }))
  }

  /** The same for a gauge. */
  scrapedGauge(
    name: string,
    help: string,
    read: Read,
    aggregator: Aggregator = 'sum',
    labelNames: string[] = [],
  ): void {
    this.registry.registerMetric(
      new Gauge({ name, help, aggregator, labelNames, registers: [], collect: collector(read) }),
    )
  }
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
