import { allMetrics } from '../telemetry/metrics-table.ts'
import { createSupervisorMetrics } from '../../../src/telemetry/metrics.ts'
import { baseOf } from './rule-tests.ts'

/** Labels that Prometheus adds itself, or the histogram, and that of the targets. */
const ADDED = ['instance', 'job', 'le', 'environment']

/** The metrics in a PromQL expression, with the labels of their selectors. */
export function metricsIn(expr: string): { name: string; labels: string[] }[] {
  return [...expr.matchAll(/\b((?:bff|nodejs|process)_\w+)(?:\{([^}]*)\})?/g)].map(([, name = '', selector = '']) => ({
    name,
    labels: [...selector.matchAll(/(\w+)\s*[=!]/g)].map(([, label = '']) => label),
  }))
}

/** The labels by which an expression groups. */
export function groupedBy(expr: string): string[] {
  return [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, names = '']) => names.split(/, */))
}

/** What an expression selects or groups by that no metric of this server has, in words. */
export function unknownIn(expr: string): string[] {
  const made = [...expr.matchAll(/label_replace\(.*?, "(\w+)",/g)].map(([, label = '']) => label)
  return metricsIn(expr).flatMap(({ name, labels }) => {
    const known = labelsOf(baseOf(name))
    if (known === undefined) return [`no metric ${name}`]
    const allowed = new Set([...ADDED, ...made, ...known])
    return [...labels, ...groupedBy(expr)]
      .filter((label) => !allowed.has(label))
      .map((label) => `${name} has no ${label}`)
  })
}

let all: ReadonlyMap<string, readonly string[]> | undefined

function labelsOf(metric: string): readonly string[] | undefined {
  all ??= new Map([
    ['bff_ready', []],
    ...[allMetrics(), createSupervisorMetrics().registry].flatMap((registry) =>
      registry.getMetricsAsArray().map((each) => {
        const { name, labelNames = [] } = each as unknown as { name: string; labelNames?: string[] }
        return [name, labelNames] as const
      }),
    ),
  ])
  return all.get(metric)
}
