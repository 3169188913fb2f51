import { join } from 'node:path'
import { test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { collectorHeaders } from '../../src/config/traces.ts'
import { workerEnvironment } from '../../src/config/worker-environment.ts'
import { errorOf, wrongOnes } from '../support/config/wrong-settings.ts'
import { ALONE } from '../support/server/settings.ts'
import { exactly } from '../support/exactly.ts'

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/' }
const tracesOf = (settings: Record<string, string>) => readConfig({ ...ALONE, ...settings }).traces

await test('There are traces only with an endpoint, and neither with OTEL_SDK_DISABLED nor with OTEL_TRACES_EXPORTER=none', (t) => {
  t.equal(tracesOf({}), undefined)
  t.equal(tracesOf({ OTEL_SERVICE_NAME: 'x', OTEL_TRACES_SAMPLER: 'always_on' }), undefined)
  t.equal(tracesOf(ENDPOINT)?.url, 'http://collector:4318/v1/traces')
  t.equal(tracesOf({ ...ENDPOINT, OTEL_SDK_DISABLED: 'true' }), undefined)
  t.equal(tracesOf({ ...ENDPOINT, OTEL_SDK_DISABLED: '1' }), undefined)
  t.equal(tracesOf({ ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' }), undefined)
  t.equal(tracesOf({ OTEL_EXPORTER_OTLP_ENDPOINT: '' }), undefined, 'an empty value counts as unset')
  t.end()
})

await test('A variable for traces alone goes before the general one', (t) => {
  const file = join(t.testdir({ ca: 'general', key: 'own' }), 'ca')
  const traces = tracesOf({
    ...ENDPOINT,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://other:1/path',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json',
    OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
    OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: 'none',
    OTEL_EXPORTER_OTLP_TIMEOUT: '1',
    OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: '2',
    OTEL_EXPORTER_OTLP_CERTIFICATE: file,
    OTEL_BSP_MAX_QUEUE_SIZE: '100',
    OTEL_RESOURCE_ATTRIBUTES: 'a=b%20c, d=,a=e',
  })
  t.match(traces, { url: 'https://other:1/path', protocol: 'http/json', compression: 'none', timeoutMs: 2 })
  t.match(traces, { tls: { ca: file, cert: undefined }, resource: { a: 'e', d: '' }, ratio: 1 })
  t.same(traces?.batch, { delayMs: 5000, timeoutMs: 30_000, maxQueued: 100, maxSpans: 100 })
  t.end()
})

await test('Wrong variables are named and not printed where there are traces, and do not matter where there are none', (t) => {
  const wrong = {
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'collector:4317',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_EXPORTER_OTLP_HEADERS: 'not-to-print',
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'authorization=not-to-print%0A',
    OTEL_EXPORTER_OTLP_CLIENT_KEY: '/nowhere',
    OTEL_RESOURCE_ATTRIBUTES: 'a=%',
    OTEL_TRACES_SAMPLER: 'xray',
    OTEL_TRACES_SAMPLER_ARG: '1.5',
    OTEL_TRACES_EXPORTER: 'otlp,console',
    OTEL_BSP_MAX_QUEUE_SIZE: '1e3',
    OTEL_SDK_DISABLED: 'maybe',
    TRUST_TRACEPARENT: 'yes',
  }
  t.same(wrongOnes({ ...ALONE, ...ENDPOINT, ...wrong }), Object.keys(wrong).toSorted())
  t.notMatch(errorOf({ ...ALONE, ...ENDPOINT, ...wrong })?.message, /not-to-print/)
  t.same(wrongOnes({ ...ALONE, ...ENDPOINT, ...wrong, OTEL_SDK_DISABLED: 'true' }), ['TRUST_TRACEPARENT'])
  t.same(wrongOnes({ ...ALONE, ...wrong, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: '' }), ['TRUST_TRACEPARENT'])
  const batch = { OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '11', OTEL_BSP_MAX_QUEUE_SIZE: '10' }
  t.same(wrongOnes({ ...ALONE, ...ENDPOINT, ...batch }), ['OTEL_BSP_MAX_EXPORT_BATCH_SIZE'])
  for (const OTEL_TRACES_SAMPLER_ARG of ['0', '1', '0.01', '.5', '1.0']) {
    t.equal(tracesOf({ ...ENDPOINT, OTEL_TRACES_SAMPLER_ARG })?.ratio, Number(OTEL_TRACES_SAMPLER_ARG))
  }
  t.end()
})

/** What is said about variables of OpenTelemetry. */
const warnings = (settings: Record<string, string>): string[] =>
  readConfig({ ...ALONE, ...settings }).warnings.filter((warning) => warning.startsWith('OTEL_'))

await test('Variables of OpenTelemetry that are misspelt or not obeyed are warned about; those of other signals are not', (t) => {
  const others = {
    OTEL_METRICS_EXPORTER: 'x',
    OTEL_LOGS_EXPORTER: 'x',
    OTEL_BLRP_SCHEDULE_DELAY: '1',
    OTEL_LOG_LEVEL: 'x',
  }
  t.same(warnings({ ...ENDPOINT, ...others }), [])
  t.match(
    warnings({ ...ENDPOINT, OTEL_PROPAGATORS: 'b3', OTEL_TRACE_SAMPLER: 'always_on' }),
    exactly(
      /^OTEL_TRACE_SAMPLER is not a setting: did you mean OTEL_TRACES_SAMPLER/,
      /^OTEL_PROPAGATORS is not obeyed/,
      /^OTEL_TRACE_SAMPLER is not obeyed/,
    ),
  )
  t.same(warnings({ OTEL_PROPAGATORS: 'b3' }), [], 'where there are no traces')
  t.match(warnings({ OTEL_EXPORTER_OTLP_ENDPOIN: 'http://x' }), exactly(/did you mean OTEL_EXPORTER_OTLP_ENDPOINT/))
  t.end()
})

await test('A worker has the headers that its supervisor has read, although their file has changed', (t) => {
  const folder = t.testdir({ headers: 'a=b' })
  const settings = {
    ...ALONE,
    ...ENDPOINT,
    OTEL_EXPORTER_OTLP_HEADERS: 'c=d,a=x',
    OTEL_EXPORTER_OTLP_TRACES_HEADERS_FILE: join(folder, 'headers'),
  }
  const config = readConfig(settings)
  const headers = { c: 'd', a: 'b' }
  t.same(config.traces && collectorHeaders(config.traces), headers, 'those for traces alone take precedence')
  const worker = readConfig({ ...settings, ...workerEnvironment(config) })
  t.same(worker.traces && collectorHeaders(worker.traces), headers)
  t.end()
})
