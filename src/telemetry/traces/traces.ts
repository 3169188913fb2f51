import type { FastifyBaseLogger, FastifyRequest } from 'fastify'
import type { Config } from '../../config/config.ts'
import { NO_SPAN, type Span } from './span.ts'

/** The traces of this process. */
export interface Traces {
  /**
   * Begins the span of a request. From here on its `traceparent` and `tracestate` are gone: upstream gets what the span of each
   * call says.
   */
  request(request: FastifyRequest): Span
  /** Sends what is waiting, for a few seconds at most. */
  close(): Promise<void>
}

/** The traces where there is no collector. */
export const NO_TRACES: Traces = { request: () => NO_SPAN, close: async () => undefined }

/** Opens the traces of the settings. Without a collector nothing of OpenTelemetry is loaded. */
export async function openTraces(
  { traces: config, publicUrl }: Pick<Config, 'traces' | 'publicUrl'>,
  log: FastifyBaseLogger,
): Promise<Traces> {
  if (config === undefined) return NO_TRACES
  const { RecordedTraces } = await import('./recorded-traces.ts')
  return RecordedTraces.open(config, publicUrl, log)
}
