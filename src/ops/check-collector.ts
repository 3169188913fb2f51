import { Agent, request } from 'undici'
import type { CheckResult } from '../config/setting-rule.ts'
import { collectorHeaders, readTls, type TracesConfig } from '../config/traces.ts'
import type { ProbeResult } from '../oauth/probe-requests.ts'
import { connector } from '../peers/dialing.ts'
import { reach, TIMEOUT_MS } from './reach.ts'

/**
 * Sends the collector of traces a request without a span. What fails is only a warning, since nothing but the traces depends on
 * it.
 */
export async function checkCollector(config: TracesConfig): Promise<CheckResult> {
  const isJson = config.protocol === 'http/json'
  const headers = {
    ...collectorHeaders(config),
    'content-type': isJson ? 'application/json' : 'application/x-protobuf',
  }
  const dispatcher = new Agent({
    allowH2: false,
    connect: connector('other', { timeoutMs: TIMEOUT_MS, tls: readTls(config) }),
  })
  const result = await reach('OTEL_EXPORTER_OTLP_ENDPOINT', config.url, async (url, signal) => {
    const body = isJson ? '{}' : ''
    const { statusCode, body: response } = await request(url, { method: 'POST', headers, body, signal, dispatcher })
    response.on('error', () => undefined).destroy()
    return judge(statusCode)
  })
  await dispatcher.destroy()
  return result.is === 'failed' ? { ...result, is: 'warning' } : result
}

function judge(status: number): ProbeResult {
  if (status >= 200 && status < 300) return { is: 'ok', message: `takes traces (${status})` }
  const advice =
    status === 401 || status === 403
      ? 'Check OTEL_EXPORTER_OTLP_HEADERS.'
      : 'The path is /v1/traces, unless OTEL_EXPORTER_OTLP_TRACES_ENDPOINT has another one; gRPC has a port of its own (4317), which is not for this server.'
  return { is: 'failed', message: `does not take traces (${status})`, advice }
}
