import {
  createTraceState,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  trace,
  TraceFlags,
  type Tracer,
} from '@opentelemetry/api'
import { parseTraceParent } from '@opentelemetry/core'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  RandomIdGenerator,
  type Sampler,
  SamplingDecision,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import {
  ATTR_HTTP_REQUEST_METHOD,
  ATTR_HTTP_ROUTE,
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
import type { Span } from './span.ts'

/** Of a `tracestate` (W3C Trace Context §3.3.1.1). */
const MAX_MEMBERS = 32
/** At shutdown, a collector gets this long to take what is waiting. */
const CLOSE_GRACE_MS = 5000

/** Gives a trace the id that its request has chosen. Spans get random ones. */
class TraceIdsByRequest extends RandomIdGenerator {
  traceId = ''

  override generateTraceId(): string {
    return this.traceId
  }
}

interface RequestOptions {
  readonly scheme: string
  readonly trustsTraceparent: boolean
}

/** Traces that are sent to a collector by the SDK of OpenTelemetry, which is told all that its variables say. */
export class RecordedTraces {
  readonly #provider: TracerProvider
  readonly #tracer: Tracer
  readonly #sampler: Sampler
  readonly #ids: TraceIdsByRequest
  readonly #scheme: string
  readonly #trustsTraceparent: boolean

  private constructor(provider: TracerProvider, sampler: Sampler, ids: TraceIdsByRequest, options: RequestOptions) {
    this.#provider = provider
    this.#tracer = provider.getTracer(program.name, program.version)
    this.#sampler = sampler
    this.#ids = ids
    this.#scheme = options.scheme
    this.#trustsTraceparent = options.trustsTraceparent
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
    const sampler = samplerOf(config)
    const ids = new TraceIdsByRequest()
    const provider = new TracerProvider({
      sampler,
      idGenerator: ids,
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
    const scheme = new URL(publicUrl).protocol.slice(0, -1)
    return new RecordedTraces(provider, sampler, ids, { scheme, trustsTraceparent: config.trustsTraceparent })
  }

  request({ id, method, routeOptions, raw: { headers } }: FastifyRequest): Span {
    const { url: route } = routeOptions
    const name = route === undefined ? method : `${method} ${route}`
    const caller = headers['traceparent'] === undefined ? undefined : callerOf(headers)
    const parent =
      this.#trustsTraceparent && caller !== undefined ? withState(caller, headers['tracestate']) : undefined
    if (headers['traceparent'] !== undefined) delete headers['traceparent']
    if (headers['tracestate'] !== undefined) delete headers['tracestate']
    const context = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent)
    // The digits of X-Request-Id.
    const traceId = parent?.traceId ?? id.replaceAll('-', '')
    // The tracer asks the sampler too, but at several times the cost for a request that is left out.
    const { decision } = this.#sampler.shouldSample(context, traceId, name, SpanKind.SERVER, {}, [])
    if (decision !== SamplingDecision.RECORD_AND_SAMPLED) {
      const spanId = this.#ids.generateSpanId()
      return new UnrecordedSpan({ ...parent, traceId, spanId, traceFlags: TraceFlags.NONE, isRemote: false })
    }
    this.#ids.traceId = traceId
    const links = parent === undefined && caller !== undefined ? [{ context: caller }] : []
    const span = this.#tracer.startSpan(name, { kind: SpanKind.SERVER, links }, context)
    // The path and the query of the request have values in them.
    span.setAttributes({
      [ATTR_HTTP_REQUEST_METHOD]: method,
      [ATTR_URL_PATH]: route ?? '/*',
      [ATTR_URL_SCHEME]: this.#scheme,
    })
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

function withState(parent: SpanContext, tracestate: string | string[] | undefined): SpanContext {
  const text = Array.isArray(tracestate) ? tracestate.join(',') : tracestate
  if (text === undefined) return parent
  // Its own way to shorten a longer list turns the list around. The newest members come first.
  const members = text.split(',').filter((member) => member.trim() !== '')
  const traceState = createTraceState(members.slice(0, MAX_MEMBERS).join(','))
  // Malformed parts are dropped (W3C Trace Context §3.3.1), and nothing may be left.
  return traceState.serialize() === '' ? parent : { ...parent, traceState }
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
