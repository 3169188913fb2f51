import { readFileSync } from 'node:fs'
import { keyValues } from './key-values.ts'
import { formats } from './setting-formats.ts'
import {
  changing,
  flag,
  oneOf,
  optional,
  problemsWhere,
  whole,
  wholeFrom,
  withDefault,
  type SettingProblem,
  type ValuesOf,
} from './setting-rule.ts'

const PROTOCOL = oneOf('http/protobuf', 'http/json')
const COMPRESSION = oneOf('none', 'gzip')
const TIMEOUT_MS = [1, 600_000] as const
/** The samplers of the OpenTelemetry specification. `parentbased_` obeys the decision of a trusted caller. */
const SAMPLER = oneOf(
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
  'always_on',
  'always_off',
  'traceidratio',
)
const SAME = 'The same for traces alone'

/** The standard variables of OpenTelemetry (its specification, Environment Variables) that concern traces. */
export const tracesSettings = {
  endpoint: optional('OTEL_EXPORTER_OTLP_ENDPOINT', formats.httpUrl).means(
    'OpenTelemetry collector to which traces are sent, without its path /v1/traces; no traces when unset',
  ),
  ownEndpoint: optional('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', formats.httpUrl).means(`${SAME}, with its path`),
  headers: optional('OTEL_EXPORTER_OTLP_HEADERS', changing(formats.headers)).means(
    'Comma-separated name=value headers for the collector; a secret',
  ),
  ownHeaders: optional('OTEL_EXPORTER_OTLP_TRACES_HEADERS', changing(formats.headers)).means(`${SAME}; a secret`),
  protocol: withDefault('OTEL_EXPORTER_OTLP_PROTOCOL', 'http/protobuf', PROTOCOL).means('How traces are written'),
  ownProtocol: optional('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', PROTOCOL).means(SAME),
  compression: withDefault('OTEL_EXPORTER_OTLP_COMPRESSION', 'none', COMPRESSION).means('Whether they are compressed'),
  ownCompression: optional('OTEL_EXPORTER_OTLP_TRACES_COMPRESSION', COMPRESSION).means(SAME),
  timeoutMs: whole('OTEL_EXPORTER_OTLP_TIMEOUT', 10_000, TIMEOUT_MS).means(
    'Milliseconds in which the collector must take a batch',
  ),
  ownTimeoutMs: optional('OTEL_EXPORTER_OTLP_TRACES_TIMEOUT', wholeFrom(...TIMEOUT_MS)).means(SAME),
  ca: optional('OTEL_EXPORTER_OTLP_CERTIFICATE', formats.file).means(
    'File with the certificate authority of the collector',
  ),
  ownCa: optional('OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE', formats.file).means(SAME),
  cert: optional('OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE', formats.file).means(
    'File with a client certificate for the collector',
  ),
  ownCert: optional('OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE', formats.file).means(SAME),
  key: optional('OTEL_EXPORTER_OTLP_CLIENT_KEY', formats.file).means('File with the private key of that certificate'),
  ownKey: optional('OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY', formats.file).means(SAME),
  isOff: flag('OTEL_SDK_DISABLED', false).means('No traces, whatever the other variables say'),
  sentTo: withDefault('OTEL_TRACES_EXPORTER', 'otlp', oneOf('otlp', 'none')).means('none = no traces'),
  serviceName: optional('OTEL_SERVICE_NAME', formats.printable).means(
    'Name of this server in traces (default: trading-bff)',
  ),
  resource: optional('OTEL_RESOURCE_ATTRIBUTES', formats.attributes).means(
    'Comma-separated name=value attributes of this server in traces',
  ),
  sampler: withDefault('OTEL_TRACES_SAMPLER', 'parentbased_always_on', SAMPLER).means('Which requests are recorded'),
  ratio: optional('OTEL_TRACES_SAMPLER_ARG', formats.ratio).means(
    'Part of the requests that a ratio sampler records (default: 1)',
  ),
  delayMs: whole('OTEL_BSP_SCHEDULE_DELAY', 5000, TIMEOUT_MS).means('Milliseconds between two batches'),
  exportMs: whole('OTEL_BSP_EXPORT_TIMEOUT', 30_000, TIMEOUT_MS).means(
    'Milliseconds after which the next batch is sent in any case',
  ),
  maxQueued: whole('OTEL_BSP_MAX_QUEUE_SIZE', 2048, [1, 1_000_000]).means(
    'Spans that wait to be sent; more are dropped',
  ),
  maxSpans: whole('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512, [1, 1_000_000]).means('Spans in a batch'),
  trustsTraceparent: flag('TRUST_TRACEPARENT', false).means(
    'Whether traceparent and tracestate of a request are believed, because a balancer sets its own',
  ),
}

type TracesValues = ValuesOf<typeof tracesSettings>

const OF_TRACES: ReadonlySet<string> = new Set(Object.values(tracesSettings).map(({ name }) => name))

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
  return name.startsWith('OTEL_') && OF_TRACES.has(name.replace(/_FILE$/, ''))
}

/** Completes how traces are recorded and sent; undefined where there are none. */
export function tracesConfig(traces: TracesValues) {
  const { endpoint, ownEndpoint, headers, ownHeaders, serviceName, sampler, trustsTraceparent } = traces
  const url = ownEndpoint ?? (endpoint && `${endpoint.replace(/\/$/, '')}/v1/traces`)
  if (url === undefined || traces.isOff || traces.sentTo === 'none') return undefined
  return {
    url,
    headers,
    ownHeaders,
    protocol: traces.ownProtocol ?? traces.protocol,
    compression: traces.ownCompression ?? traces.compression,
    timeoutMs: traces.ownTimeoutMs ?? traces.timeoutMs,
    /** Files. */
    tls: {
      ca: traces.ownCa ?? traces.ca,
      cert: traces.ownCert ?? traces.cert,
      key: traces.ownKey ?? traces.key,
    },
    serviceName,
    resource: traces.resource ?? {},
    sampler,
    ratio: traces.ratio ?? 1,
    batch: {
      delayMs: traces.delayMs,
      timeoutMs: traces.exportMs,
      maxQueued: traces.maxQueued,
      maxSpans: Math.min(traces.maxSpans, traces.maxQueued),
    },
    trustsTraceparent,
  }
}

/** The headers for the collector, as they are now. Those for traces alone take precedence. Secret. */
export function collectorHeaders({ headers, ownHeaders }: TracesConfig): Record<string, string> {
  return { ...keyValues(headers?.current ?? ''), ...keyValues(ownHeaders?.current ?? '') }
}

/** Finds contradictions between settings. */
export function tracesChecks(
  { maxSpans = 0, maxQueued = Infinity }: Partial<TracesValues>,
  raw: Readonly<Record<string, string>>,
): SettingProblem[] {
  return problemsWhere([
    [
      'OTEL_BSP_MAX_EXPORT_BATCH_SIZE',
      raw['OTEL_BSP_MAX_EXPORT_BATCH_SIZE'] !== undefined && maxSpans > maxQueued,
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
