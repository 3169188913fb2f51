import { AsyncLocalStorage } from 'node:async_hooks'

/** The names of a span for log lines and callers: 32 and 16 hexadecimal digits. */
export interface TraceIds {
  readonly trace_id: string
  readonly span_id: string
}

/** The details of an event or a span. Never a value that a browser or another service has sent. */
export type Attributes = Readonly<Record<string, string | number>>

/** A server to which requests are sent. `url` is without user, query and fragment. */
export interface Destination {
  readonly url: string
  readonly address: string
  readonly port: number
}

/** A request to another service, by the template of its path: values in a path are secret. */
export interface OutgoingCall {
  readonly method: string
  readonly template: string
  readonly to: Destination
  readonly attributes?: Attributes
}

/** How a span ended: by a status, or by a failure without one. */
export interface SpanEnd {
  /** Absent if there was no response. */
  readonly status?: number | undefined
  /** Why it failed: a word of a small set, never a text of another service. */
  readonly error?: string | undefined
}

/** A part of a trace: the handling of a request, or a call that it makes. Where there are no traces, it does nothing. */
export interface Span {
  /** Undefined where there are no traces. */
  readonly ids: TraceIds | undefined
  /** Runs something as a part of this span: {@link activeSpan} is this one, in whatever it starts, too. */
  run<Result>(part: () => Result): Result
  /** Begins a span for a call to another service. */
  call(call: OutgoingCall): Span
  /**
   * Starts to measure a part.
   * @returns records the part as a span of its own, when it is over. More calls have no effect. Until then almost nothing is kept
   */
  measure(name: string): (event?: SpanEvent) => void
  event(event: SpanEvent): void
  /** The headers of a call, and the one that tells its receiver of this span. */
  carry(headers: readonly string[]): readonly string[]
  /** Says why it will have failed. */
  fail(error: string): void
  /** Ends it. More calls have no effect. */
  end(end: SpanEnd): void
}

/** Something that happened at a moment of a span. */
export interface SpanEvent {
  readonly name: string
  readonly attributes: Attributes
}

const nothing = (): void => undefined

/** The span where there are no traces. */
export const NO_SPAN: Span = {
  ids: undefined,
  run: (part) => part(),
  call: () => NO_SPAN,
  measure: () => nothing,
  event: nothing,
  carry: (headers) => headers,
  fail: nothing,
  end: nothing,
}

const active = new AsyncLocalStorage<Span>()

/** The span of what runs at present. */
export function activeSpan(): Span {
  return active.getStore() ?? NO_SPAN
}

/** Runs something as a part of a span. */
export function runIn<Result>(span: Span, part: () => Result): Result {
  return active.run(span, part)
}

/** Runs something that belongs to no request, such as a timer that many share. */
export function untraced<Result>(part: () => Result): Result {
  return active.exit(part)
}

/** Measures how long the active span waits for a result. One that is there already costs nothing. Returns the result itself. */
export function waiting<Result>(name: string, result: Result): Result {
  if (result instanceof Promise) {
    const over = activeSpan().measure(name)
    if (over !== nothing)
      void result.then(
        () => over(),
        () => over(),
      )
  }
  return result
}

/** The server that a URL names. */
export function destinationOf(url: string): Destination {
  const { origin, protocol, hostname, port, pathname } = new URL(url)
  const isSecure = protocol === 'https:' || protocol === 'wss:'
  return {
    url: origin + pathname.replace(/\/$/, ''),
    address: hostname,
    port: port === '' ? (isSecure ? 443 : 80) : Number(port),
  }
}
