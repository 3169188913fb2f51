import {
  type Context,
  createTraceState,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  trace,
  type Tracer,
} from '@opentelemetry/api'
import { parseTraceParent } from '@opentelemetry/core'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import {
  ATTR_HTTP_REQUEST_METHOD,
  ATTR_HTTP_ROUTE,
  ATTR_SERVER_ADDRESS,
  ATTR_SERVER_PORT,
  ATTR_SERVICE_INSTANCE_ID,
  ATTR_SERVICE_NAME,
  ATTR_SERVICE_VERSION,
  ATTR_URL_PATH,
  ATTR_URL_SCHEME,
} from '@opentelemetry/semantic-conventions'
import { randomUUID } from 'node:crypto'
import type { FastifyBaseLogger, FastifyRequest } from 'fastify'
import program from '../../../package.json' with { type: 'json' }
import type { TracesConfig } from '../../config/traces.ts'
import { within } from '../../time/within.ts'
import { createExporter } from './exporter.ts'
import { RecordedSpan, UnrecordedSpan } from './recorded-span.ts'
import { type Attributes, destinationOf, type Span } from './span.ts'
import type { Traces } from './traces.ts'

/** At shutdown, a collector gets this long to take what is waiting. */
const CLOSE_GRACE_MS = 5000

/** Traces that are sent to a collector by the SDK of OpenTelemetry, which reads none of its variables itself. */
export class RecordedTraces implements Traces {
  readonly #provider: TracerProvider
  readonly #tracer: Tracer
  readonly #trustsTraceparent: boolean
  /** What all requests have in common. */
  readonly #server: Attributes

  private constructor(provider: TracerProvider, publicUrl: string, trustsTraceparent: boolean) {
    this.#provider = provider
    this.#tracer = provider.getTracer(program.name, program.version)
    this.#trustsTraceparent = trustsTraceparent
    const { address, port } = destinationOf(publicUrl)
    const scheme = new URL(publicUrl).protocol.slice(0, -1)
    this.#server = { [ATTR_URL_SCHEME]: scheme, [ATTR_SERVER_ADDRESS]: address, [ATTR_SERVER_PORT]: port }
  }

  static async open(config: TracesConfig, publicUrl: string, log: FastifyBaseLogger): Promise<RecordedTraces> {
    const { batch, serviceName, resource } = config
    const processor = new BatchSpanProcessor({
      exporter: await createExporter(config, log),
      scheduledDelayMillis: batch.delayMs,
      exportTimeoutMillis: batch.timeoutMs,
      maxQueueSize: batch.maxQueued,
      maxExportBatchSize: batch.maxSpans,
    })
    const provider = new TracerProvider({
      sampler: samplerOf(config),
      spanProcessors: [processor],
      resource: resourceFromAttributes({
        [ATTR_SERVICE_NAME]: program.name,
        [ATTR_SERVICE_VERSION]: program.version,
        // Workers of an instance differ.
        [ATTR_SERVICE_INSTANCE_ID]: randomUUID(),
        ...resource,
        ...(serviceName !== undefined && { [ATTR_SERVICE_NAME]: serviceName }),
      }),
    })
    return new RecordedTraces(provider, publicUrl, config.trustsTraceparent)
  }

  request({ method, routeOptions, raw: { headers } }: FastifyRequest): Span {
    const { url: route } = routeOptions
    const caller = headers['traceparent'] === undefined ? undefined : callerOf(headers)
    const isParent = this.#trustsTraceparent && caller !== undefined
    const span = this.#tracer.startSpan(
      route === undefined ? method : `${method} ${route}`,
      { kind: SpanKind.SERVER, ...(!isParent && caller !== undefined && { links: [{ context: caller }] }) },
      isParent ? withParent(caller, headers['tracestate']) : ROOT_CONTEXT,
    )
    if (headers['traceparent'] !== undefined) delete headers['traceparent']
    if (headers['tracestate'] !== undefined) delete headers['tracestate']
    if (!span.isRecording()) return new UnrecordedSpan(span.spanContext())
    // The path and the query of the request have values in them.
    span.setAttributes({ [ATTR_HTTP_REQUEST_METHOD]: method, [ATTR_URL_PATH]: route ?? '/*', ...this.#server })
    if (route !== undefined) span.setAttribute(ATTR_HTTP_ROUTE, route)
    return new RecordedSpan(this.#tracer, span, SpanKind.SERVER)
  }

  async close(): Promise<void> {
    // A failure has been logged.
    await within(
      CLOSE_GRACE_MS,
      this.#provider.shutdown().catch(() => undefined),
    )
  }
}

/** The span that a caller names (W3C Trace Context §3.2). Undefined if it names none. */
function callerOf(headers: FastifyRequest['raw']['headers']): SpanContext | undefined {
  const { traceparent } = headers
  const caller = typeof traceparent === 'string' ? parseTraceParent(traceparent) : null
  return caller === null ? undefined : { ...caller, isRemote: true }
}

function withParent(parent: SpanContext, tracestate: string | string[] | undefined): Context {
  const text = Array.isArray(tracestate) ? tracestate.join(',') : tracestate
  const state = text === undefined ? {} : { traceState: createTraceState(text) }
  return trace.setSpanContext(ROOT_CONTEXT, { ...parent, ...state })
}

function samplerOf({ sampler, ratio }: TracesConfig): Sampler {
  switch (sampler) {
    case 'always_on':
      return new AlwaysOnSampler()
    case 'always_off':
      return new AlwaysOffSampler()
    case 'traceidratio':
      return new TraceIdRatioBasedSampler(ratio)
    case 'parentbased_always_off':
      return new ParentBasedSampler({ root: new AlwaysOffSampler() })
    case 'parentbased_traceidratio':
      return new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) })
    default:
      return new ParentBasedSampler({ root: new AlwaysOnSampler() })
  }
}
