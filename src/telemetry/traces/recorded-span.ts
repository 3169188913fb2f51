import {
  type Context,
  ROOT_CONTEXT,
  type Span as SdkSpan,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Tracer,
} from '@opentelemetry/api'
import {
  ATTR_ERROR_TYPE,
  ATTR_HTTP_REQUEST_METHOD,
  ATTR_HTTP_RESPONSE_STATUS_CODE,
  ATTR_SERVER_ADDRESS,
  ATTR_SERVER_PORT,
  ATTR_URL_FULL,
} from '@opentelemetry/semantic-conventions'
import { type OutgoingCall, runIn, type Span, type SpanEnd, type SpanEvent, type TraceIds } from './span.ts'

const nothing = (): void => undefined

/** A span that the sampler has left out: its ids go on, and nothing is recorded. */
export class UnrecordedSpan implements Span {
  protected readonly context: SpanContext

  constructor(context: SpanContext) {
    this.context = context
  }

  get ids(): TraceIds {
    return { trace_id: this.context.traceId, span_id: this.context.spanId }
  }

  run<Result>(part: () => Result): Result {
    return runIn(this, part)
  }

  call(_call: OutgoingCall): Span {
    return this
  }

  measure(_name: string): (event?: SpanEvent) => void {
    return nothing
  }

  event(_event: SpanEvent): void {}

  carry(headers: readonly string[]): readonly string[] {
    const { traceId, spanId, traceFlags, traceState } = this.context
    // W3C Trace Context §3.2
    const flags = (traceFlags & TraceFlags.SAMPLED) === 0 ? '00' : '01'
    const carried = [...headers, 'traceparent', `00-${traceId}-${spanId}-${flags}`]
    if (traceState !== undefined) carried.push('tracestate', traceState.serialize())
    return carried
  }

  fail(_error: string): void {}

  end(_end: SpanEnd): void {}
}

/** A span that is recorded, with the stable attributes of OpenTelemetry's conventions for HTTP. */
export class RecordedSpan extends UnrecordedSpan {
  readonly #tracer: Tracer
  readonly #span: SdkSpan
  /** The first status that counts as a failure: to a caller any refusal is one, to a server only its own faults. */
  readonly #failsFrom: number
  #error: string | undefined
  #isOver = false

  constructor(tracer: Tracer, span: SdkSpan, kind: SpanKind) {
    super(span.spanContext())
    this.#tracer = tracer
    this.#span = span
    this.#failsFrom = kind === SpanKind.CLIENT ? 400 : 500
  }

  override call({ method, template, to, attributes }: OutgoingCall): Span {
    const span = this.#tracer.startSpan(`${method} ${template}`, { kind: SpanKind.CLIENT }, contextOf(this.context))
    span.setAttributes({
      [ATTR_HTTP_REQUEST_METHOD]: method,
      [ATTR_URL_FULL]: to.url + template,
      [ATTR_SERVER_ADDRESS]: to.address,
      [ATTR_SERVER_PORT]: to.port,
      ...attributes,
    })
    return new RecordedSpan(this.#tracer, span, SpanKind.CLIENT)
  }

  override measure(name: string): (event?: SpanEvent) => void {
    // Nothing else is kept: a socket may be open for hours.
    const { context } = this
    const tracer = this.#tracer
    const startTime = performance.now()
    let isOver = false
    return (event) => {
      if (isOver) return
      isOver = true
      const span = tracer.startSpan(name, { startTime }, contextOf(context))
      if (event !== undefined) span.addEvent(event.name, event.attributes, performance.now())
      span.end(performance.now())
    }
  }

  override event({ name, attributes }: SpanEvent): void {
    if (!this.#isOver) this.#span.addEvent(name, attributes)
  }

  override fail(error: string): void {
    this.#error = error
  }

  override end({ status = 0, error = this.#error }: SpanEnd): void {
    if (this.#isOver) return
    this.#isOver = true
    const span = this.#span
    if (status !== 0) span.setAttribute(ATTR_HTTP_RESPONSE_STATUS_CODE, status)
    if (error !== undefined || status >= this.#failsFrom) {
      span.setAttribute(ATTR_ERROR_TYPE, error ?? String(status))
      span.setStatus({ code: SpanStatusCode.ERROR })
    }
    span.end()
  }
}

function contextOf(parent: SpanContext): Context {
  return trace.setSpanContext(ROOT_CONTEXT, parent)
}
