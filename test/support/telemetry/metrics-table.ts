import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import pino from 'pino'
import type { Registry } from 'prom-client'
import { readConfig } from '../../../src/config/config.ts'
import { createOpsListener } from '../../../src/ops/ops-listener.ts'
import { createBudgetMetrics } from '../../../src/telemetry/budget-metrics.ts'
import { createControlsMetrics } from '../../../src/telemetry/controls-metrics.ts'
import { createFeedMetrics } from '../../../src/telemetry/feed-metrics.ts'
import { createIdentityMetrics } from '../../../src/telemetry/identity-metrics.ts'
import { createMetrics, createSupervisorMetrics } from '../../../src/telemetry/metrics.ts'
import { addSecretMetrics, addSecretsInfo } from '../../../src/telemetry/secret-metrics.ts'
import { createOidcMetrics } from '../../../src/telemetry/oidc-metrics.ts'
import { NO_BUDGET } from '../budget/no-budget.ts'
import { ALONE } from '../server/settings.ts'

const FILE = fileURLToPath(new URL('../../../docs/operating/metrics-and-logs.md', import.meta.url))
const HEAD = '| Metric | Labels | What it says |'

/** The page that has the table. */
export const METRICS_GUIDE = readFileSync(FILE, 'utf8')

/** The registry of a process with every optional part. */
export function allMetrics(): Registry {
  const { registry } = createMetrics()
  createFeedMetrics(registry)
  createIdentityMetrics(registry)
  createOidcMetrics(registry)
  createControlsMetrics(registry, { version: () => 0, paused: () => ({ all: 0, subject: 0 }), notice: () => 0 })
  createBudgetMetrics(registry, NO_BUDGET)
  const config = readConfig(ALONE)
  addSecretsInfo(registry, config)
  addSecretMetrics(registry, { config, fingerprintKey: async () => undefined, files: () => [['OPS_TOKEN', false]] })
  return registry
}

/** The table of docs/operating/metrics-and-logs.md: every metric of this server by name, with the beginning of its `help`. */
export async function metricsTable(): Promise<string> {
  const registry = allMetrics()
  const rows = [registry, createSupervisorMetrics().registry].flatMap(rowsOf)
  const unique = new Set([...rows, row('bff_ready', await helpOfReadiness(registry), [])])
  return [HEAD, '| --- | --- | --- |', ...[...unique].toSorted(byName)].join('\n')
}

function rowsOf(registry: Registry): string[] {
  return registry.getMetricsAsArray().flatMap((metric) => {
    const { name, help, labelNames = [] } = metric as unknown as { name: string; help: string; labelNames?: string[] }
    return name.startsWith('bff_') ? [row(name, help, labelNames)] : []
  })
}

function row(name: string, help: string, labels: readonly string[]): string {
  // The beginning says what is counted, and how it is read over several instances; the rest explains labels and limits.
  const [beginning = ''] = help.split(/(?:[:.]|;(?! take)) /)
  // Names of metrics and settings are code.
  const text = beginning.replaceAll(/\b(?:bff_\w+|[A-Z]+(?:_[A-Z]+)+)\b/g, '`$&`')
  return `| \`${name}\` | ${labels.map((label) => `\`${label}\``).join(', ')} | ${text} |`.replace('|  |', '| |')
}

const nameIn = (line: string): string => line.split('`')[1] ?? ''
const byName = (one: string, other: string): number => (nameIn(one) < nameIn(other) ? -1 : 1)

/** The ops listener keeps this metric to itself. */
async function helpOfReadiness(registry: Registry): Promise<string> {
  const source = { reasons: () => [], warnings: () => [], registry: () => registry }
  const ops = createOpsListener(() => source, { token: undefined, log: pino({ enabled: false }) })
  const { body } = await ops.inject('/metrics')
  await ops.close()
  return /^# HELP bff_ready (.*)$/m.exec(body)?.[1] ?? ''
}

if (import.meta.main) {
  const old = METRICS_GUIDE.slice(METRICS_GUIDE.indexOf(HEAD)).split('\n\n', 1)[0] ?? ''
  const table = await metricsTable()
  writeFileSync(
    FILE,
    METRICS_GUIDE.replace(old, () => table),
  )
}
