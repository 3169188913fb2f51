import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import { buildApp } from '../../src/app.ts'
import { readConfig } from '../../src/config/config.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { Collector } from '../support/telemetry/collector.ts'
import { logInto, type Line } from '../support/telemetry/lines.ts'
import { ready, serverProcess } from '../support/server/server-process.ts'
import { ALONE } from '../support/server/settings.ts'
import { said, status, twoWorkers } from '../support/server/two-workers.ts'
import { testServer } from '../support/server/test-server.ts'
import { until } from '../support/time/until.ts'

const LOST = 'traces were lost'

await test('A collector that is away or fails costs one line a minute, and no request notices', async (t) => {
  const failing = await Collector.start(t)
  failing.respond = (response) =>
    void response.writeHead(400, 'secret-text-of-a-collector').end('secret-text-of-a-collector')
  for (const [OTEL_EXPORTER_OTLP_ENDPOINT, fields] of [
    [failing.url, { status: 400 }],
    ['http://127.0.0.1:1', { cause: { code: 'ECONNREFUSED' } }],
  ] as const) {
    const server = await testServer(t, {
      ...ALONE,
      ...failing.settings,
      OTEL_EXPORTER_OTLP_ENDPOINT,
      // Too short for a second attempt.
      OTEL_EXPORTER_OTLP_TIMEOUT: '500',
    })
    const lines = (): Line[] => server.log.filter(({ msg }) => msg === LOST)
    const get = async (): Promise<number> => (await fetch(`${server.url}/auth/session`)).status
    t.equal(await get(), 200)
    await until(() => lines().length > 0, 'the failure is logged')
    for (let more = 0; more < 3; more++) {
      t.equal(await get(), 200)
      await delay(60)
    }
    await server.close()
    t.match(lines()[0], { level: 40, batches: 1, ...fields, trace_id: undefined })
    t.ok(lines().length <= 2, 'the other failures are one line, at shutdown at the latest')
    t.notMatch(JSON.stringify(lines()), /secret-text/)
  }
})

await test('A collector that does not answer: the queue is bounded, and the rest is dropped and said', async (t) => {
  const collector = await Collector.start(t)
  collector.respond = () => undefined
  const server = await testServer(t, {
    ...ALONE,
    ...collector.settings,
    OTEL_BSP_MAX_QUEUE_SIZE: '10',
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '5',
    OTEL_EXPORTER_OTLP_TIMEOUT: '300',
    OTEL_BSP_EXPORT_TIMEOUT: '300',
  })
  for (let count = 0; count < 40; count++) await fetch(`${server.url}/auth/session`)
  await until(() => server.log.some(({ msg }) => msg === LOST))
  collector.respond = (response) => response.end('{}')
  await fetch(`${server.url}/auth/session`)
  const isLate = (): boolean => collector.requests.length > 2
  await until(isLate, 'spans are sent again')
  await server.close()
  t.ok(collector.spans.length <= 30, `${collector.spans.length} of 41 spans`)
})

await test('At shutdown, what is waiting is sent before the server has closed', async (t) => {
  const collector = await Collector.start(t)
  const server = await testServer(t, { ...ALONE, ...collector.settings, OTEL_BSP_SCHEDULE_DELAY: '600000' })
  for (let count = 0; count < 5; count++) await fetch(`${server.url}/auth/session`)
  t.same(collector.spans, [])
  await server.close()
  t.equal(collector.spans.filter(({ name }) => name === 'GET /auth/session').length, 5)
})

await test('A collector that hangs holds up a shutdown for five seconds at most', async (t) => {
  const collector = await Collector.start(t)
  collector.respond = () => undefined
  const lines: Line[] = []
  const config = readConfig({ ...ALONE, ...collector.settings, OTEL_BSP_SCHEDULE_DELAY: '600000' })
  const app = await buildApp(config, { store: new MemoryStore(), log: logInto(lines) })
  await app.server.inject('/auth/session')
  await until(async () => (await app.server.inject('/auth/session')).statusCode === 200)
  let isClosed = false
  const closed = app.close().then(() => (isClosed = true))
  await until(() => collector.requests.length === 1)
  t.notOk(isClosed, 'it waits for the collector')
  await closed
})

await test('The usual protocol, headers of a secret file, compression and the resource are as the variables say', async (t) => {
  const collector = await Collector.start(t)
  const folder = t.testdir({ headers: 'authorization=Basic%20c2VjcmV0LW9mLWEtdGVzdA%3D%3D,x-tenant=a\n' })
  const server = await testServer(t, {
    ...ALONE,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/own/path`,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=general,x-other=c%2Cd',
    OTEL_EXPORTER_OTLP_TRACES_HEADERS_FILE: `${folder}/headers`,
    OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
    OTEL_SERVICE_NAME: 'name-of-a-test',
  })
  await fetch(`${server.url}/auth/session`)
  await server.close()
  const [request] = collector.requests
  t.equal(request?.url, '/own/path')
  t.match(request?.headers, {
    'content-type': 'application/x-protobuf',
    'content-encoding': 'gzip',
    authorization: 'Basic c2VjcmV0LW9mLWEtdGVzdA==',
    'x-tenant': 'a',
    'x-other': 'c,d',
  })
  const { gunzipSync } = await import('node:zlib')
  const text = gunzipSync(request?.body ?? '').toString('latin1')
  for (const part of ['name-of-a-test', 'GET /auth/session']) t.ok(text.includes(part), part)
  t.notMatch(JSON.stringify(server.log), /c2VjcmV0LW9mLWEtdGVzdA/)
})

await test('Two workers send traces, each as an instance of its own', async (t) => {
  const collector = await Collector.start(t)
  const folder = t.testdir({ headers: 'x-secret=not-to-be-printed-anywhere' })
  const server = await twoWorkers(t, {
    ...collector.settings,
    OTEL_EXPORTER_OTLP_HEADERS_FILE: `${folder}/headers`,
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
  })
  for (let count = 0; count < 8; count++) t.equal(await status(server.port, '/auth/session'), 200)
  const instances = (): Set<unknown> => new Set(collector.spans.map(({ resource }) => resource['service.instance.id']))
  await until(() => instances().size === 2)
  t.match(collector.spans[0]?.resource, { 'deployment.environment.name': 'test' })
  t.equal(collector.requests[0]?.headers['x-secret'], 'not-to-be-printed-anywhere')
  await until(() => said(server, 'request').length > 0)
  t.match(said(server, 'request')[0], { trace_id: /^[0-9a-f]{32}$/, span_id: /^[0-9a-f]{16}$/ })
  server.child.kill('SIGTERM')
  t.equal(await server.exited, 0)
  t.notMatch(server.output().stdout, /not-to-be-printed/)
})

await test('Without a collector, nothing of OpenTelemetry is loaded', async (t) => {
  const nodeOptions = [`--import=${new URL('../support/telemetry/report-loads.ts', import.meta.url).href}`]
  const server = await serverProcess(t, { ...ALONE, OTEL_SDK_DISABLED: 'true' }, { nodeOptions })
  t.ok(await ready(server))
  t.match(server.output().stderr, /loads fastify/, 'loads are reported')
  // Redis' client loads the interface of OpenTelemetry wherever it is installed.
  t.notMatch(server.output().stderr, /loads @opentelemetry\/(?!api\n)/)
})
