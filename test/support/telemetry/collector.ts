import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Test } from 'tap'
import { httpServer } from '../server/http-server.ts'
import { scanForSecrets } from './log-scan.ts'
import { until } from '../time/until.ts'

/** The values of OTLP's JSON that this server sends (opentelemetry-proto, common.proto and trace.proto). */
type OtlpAttributes = readonly {
  readonly key: string
  readonly value: { readonly stringValue?: string; readonly intValue?: number | string }
}[]

interface OtlpSpan {
  readonly name: string
  readonly kind: number
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly traceState?: string
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes?: OtlpAttributes
  readonly events?: readonly { readonly name: string; readonly attributes?: OtlpAttributes }[]
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[]
  readonly status?: { readonly code?: number }
}

interface OtlpRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: OtlpAttributes }
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[]
  }[]
}

/** A span as a collector reads it. */
export interface ReceivedSpan {
  readonly name: string
  readonly kind: 'internal' | 'server' | 'client' | undefined
  readonly traceId: string
  readonly spanId: string
  /** Undefined for the first span of a trace. */
  readonly parent: string | undefined
  readonly traceState: string | undefined
  readonly ms: number
  readonly startMs: number
  readonly attributes: Readonly<Record<string, unknown>>
  readonly events: readonly { readonly name: string; readonly attributes: Readonly<Record<string, unknown>> }[]
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[]
  readonly hasFailed: boolean
  readonly resource: Readonly<Record<string, unknown>>
}

const KINDS = [undefined, 'internal', 'server', 'client'] as const
const FAILED = 2

/** A small OpenTelemetry collector: it takes traces over OTLP/HTTP, and decodes those that are JSON. */
export class Collector {
  url = ''
  readonly spans: ReceivedSpan[] = []
  /** The requests as they came. */
  readonly requests: { readonly url: string; readonly headers: IncomingHttpHeaders; readonly body: Buffer }[] = []
  /** Answers a request. */
  respond: (response: ServerResponse) => void = (response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}')

  /** Starts one that ends with the test, which fails if a secret has reached it. */
  static async start(t: Test): Promise<Collector> {
    const collector = new Collector()
    collector.url = await httpServer(t, (request, response) => void collector.#take(request, response))
    t.teardown(() =>
      scanForSecrets(t, 'traces', collector.requests.map(({ body }) => body.toString('latin1')).join('\n')),
    )
    return collector
  }

  /** The settings with which a server sends its traces here soon, so that they can be read. */
  get settings(): Record<string, string> {
    return {
      OTEL_EXPORTER_OTLP_ENDPOINT: this.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_BSP_SCHEDULE_DELAY: '20',
    }
  }

  /** Waits for a span with this name, and returns the latest. */
  async span(name: string): Promise<ReceivedSpan> {
    const found = (): ReceivedSpan | undefined => this.spans.findLast((span) => span.name === name)
    await until(() => found() !== undefined, `a span ${name} arrives`)
    return found() as ReceivedSpan
  }

  /** The spans of a trace in the order in which they began. */
  trace({ traceId }: Pick<ReceivedSpan, 'traceId'>): ReceivedSpan[] {
    return this.spans.filter((span) => span.traceId === traceId).toSorted((a, b) => a.startMs - b.startMs)
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    const { headers, url = '' } = request
    this.requests.push({ url, headers, body })
    if (headers['content-type'] === 'application/json' && headers['content-encoding'] === undefined) this.#read(body)
    this.respond(response)
  }

  #read(body: Buffer): void {
    const { resourceSpans } = JSON.parse(body.toString()) as OtlpRequest
    for (const { resource, scopeSpans } of resourceSpans) {
      const shared = valuesOf(resource.attributes)
      for (const { spans } of scopeSpans) for (const span of spans) this.spans.push(received(span, shared))
    }
  }
}

function received(span: OtlpSpan, resource: ReceivedSpan['resource']): ReceivedSpan {
  const startMs = Number(span.startTimeUnixNano) / 1e6
  return {
    name: span.name,
    kind: KINDS[span.kind],
    traceId: span.traceId,
    spanId: span.spanId,
    parent: span.parentSpanId || undefined,
    traceState: span.traceState,
    startMs,
    ms: Number(span.endTimeUnixNano) / 1e6 - startMs,
    attributes: valuesOf(span.attributes),
    events: (span.events ?? []).map(({ name, attributes }) => ({ name, attributes: valuesOf(attributes) })),
    links: (span.links ?? []).map(({ traceId, spanId }) => ({ traceId, spanId })),
    hasFailed: span.status?.code === FAILED,
    resource,
  }
}

function valuesOf(attributes: OtlpAttributes = []): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      value.stringValue ?? (value.intValue === undefined ? value : Number(value.intValue)),
    ]),
  )
}
