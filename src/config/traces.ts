import { readFileSync } from 'node:fs'
import { changeable } from './changing.ts'
import { isOn } from './setting-formats.ts'
import { keyValues } from './key-values.ts'
import {
  flag,
  oneOf,
  problemsWhere,
  text,
  whole,
  type SettingProblem,
  type SettingRule,
  type ValuesOf,
} from './setting-rule.ts'

const PROTOCOLS = ['http/protobuf', 'http/json'] as const
const COMPRESSIONS = ['none', 'gzip'] as const
/** The samplers of the OpenTelemetry specification. `parentbased_` obeys the decision of a trusted caller. */
const SAMPLERS = [
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
  'always_on',
  'always_off',
  'traceidratio',
] as const

/** The standard variables of OpenTelemetry (its specification, Environment Variables) that concern traces. */
export const tracesRules = {
  OTEL_EXPORTER_OTLP_ENDPOINT: text(
    'OpenTelemetry collector to which traces are sent, without its path /v1/traces; no traces when unset',
    'httpUrl',
  ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: text('The same for traces alone, with its path', 'httpUrl'),
  OTEL_EXPORTER_OTLP_HEADERS: text('Comma-separated name=value headers for the collector; a secret', 'headers'),
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: text('The same for traces alone; a secret', 'headers'),
  OTEL_EXPORTER_OTLP_PROTOCOL: oneOf('http/protobuf', PROTOCOLS, 'How traces are written'),
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: { kind: 'text', choices: PROTOCOLS, description: 'The same for traces alone' },
  OTEL_EXPORTER_OTLP_COMPRESSION: oneOf('none', COMPRESSIONS, 'Whether they are compressed'),
  OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: {
    kind: 'text',
    choices: COMPRESSIONS,
    description: 'The same for traces alone',
  },
  OTEL_EXPORTER_OTLP_TIMEOUT: whole(10_000, 1, 600_000, 'Milliseconds in which the collector must take a batch'),
  OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: {
    kind: 'whole',
    minimum: 1,
    maximum: 600_000,
    description: 'The same for traces alone',
  },
  OTEL_EXPORTER_OTLP_CERTIFICATE: text('File with the certificate authority of the collector', 'file'),
  OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE: text('The same for traces alone', 'file'),
  OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: text('File with a client certificate for the collector', 'file'),
  OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE: text('The same for traces alone', 'file'),
  OTEL_EXPORTER_OTLP_CLIENT_KEY: text('File with the private key of that certificate', 'file'),
  OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY: text('The same for traces alone', 'file'),
  OTEL_SDK_DISABLED: flag(false, 'No traces, whatever the other variables say'),
  OTEL_TRACES_EXPORTER: oneOf('otlp', ['otlp', 'none'], 'none = no traces'),
  OTEL_SERVICE_NAME: text('Name of this server in traces (default: trading-bff)', 'printable'),
  OTEL_RESOURCE_ATTRIBUTES: text('Comma-separated name=value attributes of this server in traces', 'attributes'),
  OTEL_TRACES_SAMPLER: oneOf('parentbased_always_on', SAMPLERS, 'Which requests are recorded'),
  OTEL_TRACES_SAMPLER_ARG: text('Part of the requests that a ratio sampler records (default: 1)', 'ratio'),
  OTEL_BSP_SCHEDULE_DELAY: whole(5000, 1, 600_000, 'Milliseconds between two batches'),
  OTEL_BSP_EXPORT_TIMEOUT: whole(30_000, 1, 600_000, 'Milliseconds after which the next batch is sent in any case'),
  OTEL_BSP_MAX_QUEUE_SIZE: whole(2048, 1, 1_000_000, 'Spans that wait to be sent; more are dropped'),
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: whole(512, 1, 1_000_000, 'Spans in a batch'),
  TRUST_TRACEPARENT: flag(
    false,
    'Whether traceparent and tracestate of a request are believed, because a balancer sets its own',
  ),
} as const satisfies Record<string, SettingRule>

type TracesSettings = ValuesOf<typeof tracesRules>

/** The settings with headers for the collector. */
export const TRACE_HEADERS = ['OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS'] as const

/** How traces are recorded and sent. */
export type TracesConfig = NonNullable<ReturnType<typeof tracesConfig>>

/**
 * The settings without those of OpenTelemetry if there are to be no traces: a platform may set variables for all of its programs,
 * and what it sets does not matter then.
 */
export function withoutUnusedTraces(raw: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const hasEndpoint =
    raw['OTEL_EXPORTER_OTLP_ENDPOINT'] !== undefined || raw['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] !== undefined
  if (hasEndpoint && raw['OTEL_SDK_DISABLED'] !== 'true' && raw['OTEL_TRACES_EXPORTER'] !== 'none') return raw
  return Object.fromEntries(Object.entries(raw).filter(([name]) => !isOfTraces(name)))
}

/** Whether a setting is one of traces. A misspelt one is none: it may be meant as the endpoint. */
function isOfTraces(name: string): boolean {
  return name.startsWith('OTEL_') && name.replace(/_FILE$/, '') in tracesRules
}

/** How traces are recorded and sent; undefined where there are none. */
export function tracesConfig(settings: TracesSettings) {
  const base = settings.OTEL_EXPORTER_OTLP_ENDPOINT
  const url = settings.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? (base && `${base.replace(/\/$/, '')}/v1/traces`)
  if (url === undefined || isOn(settings.OTEL_SDK_DISABLED) || settings.OTEL_TRACES_EXPORTER === 'none')
    return undefined
  return {
    url,
    headers: changeable(settings.OTEL_EXPORTER_OTLP_HEADERS),
    ownHeaders: changeable(settings.OTEL_EXPORTER_OTLP_TRACES_HEADERS),
    protocol: settings.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL ?? settings.OTEL_EXPORTER_OTLP_PROTOCOL,
    compression: settings.OTEL_EXPORTER_OTLP_TRACES_COMPRESSION ?? settings.OTEL_EXPORTER_OTLP_COMPRESSION,
    timeoutMs: settings.OTEL_EXPORTER_OTLP_TRACES_TIMEOUT ?? settings.OTEL_EXPORTER_OTLP_TIMEOUT,
    /** Files. */
    tls: {
      ca: settings.OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE ?? settings.OTEL_EXPORTER_OTLP_CERTIFICATE,
      cert: settings.OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE ?? settings.OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE,
      key: settings.OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY ?? settings.OTEL_EXPORTER_OTLP_CLIENT_KEY,
    },
    serviceName: settings.OTEL_SERVICE_NAME,
    resource: keyValues(settings.OTEL_RESOURCE_ATTRIBUTES ?? '') ?? {},
    sampler: settings.OTEL_TRACES_SAMPLER,
    ratio: Number(settings.OTEL_TRACES_SAMPLER_ARG ?? 1),
    batch: {
      delayMs: settings.OTEL_BSP_SCHEDULE_DELAY,
      timeoutMs: settings.OTEL_BSP_EXPORT_TIMEOUT,
      maxQueued: settings.OTEL_BSP_MAX_QUEUE_SIZE,
      maxSpans: Math.min(settings.OTEL_BSP_MAX_EXPORT_BATCH_SIZE, settings.OTEL_BSP_MAX_QUEUE_SIZE),
    },
    trustsTraceparent: isOn(settings.TRUST_TRACEPARENT),
  }
}

/** The headers for the collector, as they are now. Those for traces alone take precedence. Secret. */
export function collectorHeaders({ headers, ownHeaders }: TracesConfig): Record<string, string> {
  return { ...keyValues(headers?.current ?? ''), ...keyValues(ownHeaders?.current ?? '') }
}

/** Finds contradictions between settings. */
export function tracesChecks(
  settings: Partial<TracesSettings>,
  raw: Readonly<Record<string, string>>,
): SettingProblem[] {
  const { OTEL_BSP_MAX_EXPORT_BATCH_SIZE: batch = 0, OTEL_BSP_MAX_QUEUE_SIZE: queue = Infinity } = settings
  return problemsWhere([
    [
      'OTEL_BSP_MAX_EXPORT_BATCH_SIZE',
      raw['OTEL_BSP_MAX_EXPORT_BATCH_SIZE'] !== undefined && batch > queue,
      'must not be more than OTEL_BSP_MAX_QUEUE_SIZE',
    ],
  ])
}

/** The certificates of a {@link TracesConfig}, read. */
export function readTls({ tls }: TracesConfig): {
  readonly ca?: Buffer
  readonly cert?: Buffer
  readonly key?: Buffer
} {
  const files = Object.entries(tls).filter(([, file]) => file !== undefined)
  return Object.fromEntries(files.map(([name, file]) => [name, readFileSync(file as string)]))
}
