import { diag, DiagLogLevel } from '@opentelemetry/api'
import { ExportResultCode } from '@opentelemetry/core'
import type { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import type { SpanExporter } from '@opentelemetry/sdk-trace'
import type { FastifyBaseLogger } from 'fastify'
import { collectorHeaders, readTls, type TracesConfig } from '../../config/traces.ts'
import { dialing } from '../../peers/dialing.ts'
import { BoundedLines } from '../bounded-lines.ts'
import { untraced } from './span.ts'

/** A collector that fails fails for every batch. */
const failures = new BoundedLines({ atOnce: 1, everyMs: 60_000 })
const LOST = 'traces were lost'
const MAX_WHY = 200

type Compression = NonNullable<ConstructorParameters<typeof OTLPTraceExporter>[0]>['compression']

const silent = (): void => undefined

/** Makes what sends spans to the collector. Its failures are logged once a minute. */
export async function createExporter(config: TracesConfig, log: FastifyBaseLogger): Promise<SpanExporter> {
  // The SDK tells only its own log when the queue was full. Its further arguments may be of the collector.
  const warn = (message: string): void => report(log, { why: message.slice(0, MAX_WHY) })
  const sdkLog = { warn, error: silent, info: silent, debug: silent, verbose: silent }
  diag.setLogger(sdkLog, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true })
  const { OTLPTraceExporter: Exporter } =
    config.protocol === 'http/json'
      ? await import('@opentelemetry/exporter-trace-otlp-http')
      : await import('@opentelemetry/exporter-trace-otlp-proto')
  const exporter = new Exporter({
    url: config.url,
    // Read for each batch, since they may change.
    headers: async () => collectorHeaders(config),
    timeoutMillis: config.timeoutMs,
    // oxlint-disable-next-line typescript/no-unsafe-enum-assignment -- its words are those that the setting may have
    compression: config.compression as NonNullable<Compression>,
    httpAgentOptions: { keepAlive: true, ...dialing('other', config.timeoutMs), ...readTls(config) },
    // At shutdown all batches are sent at the same time.
    concurrencyLimit: 1 + Math.ceil(config.batch.maxQueued / config.batch.maxSpans),
  })
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        if (result.code !== ExportResultCode.SUCCESS) report(log, { spans: spans.length, ...reasonOf(result.error) })
        done(result)
      }),
    forceFlush: () => exporter.forceFlush(),
    shutdown: () => exporter.shutdown(),
  }
}

/** A status is of the collector, and anything else an error of the connection. */
function reasonOf(error: (Error & { readonly code?: unknown }) | undefined): object {
  return typeof error?.code === 'number' ? { status: error.code } : { cause: error }
}

function report(log: FastifyBaseLogger, reason: object): void {
  const write = (batches: number): void => untraced(() => log.warn({ ...reason, batches }, LOST))
  failures.add(log, { id: LOST, write })
}
