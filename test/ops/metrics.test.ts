import { open } from 'node:fs/promises'
import { request } from 'node:http'
import { devNull } from 'node:os'
import { test } from 'tap'
import program from '../../package.json' with { type: 'json' }
import { until } from '../support/time/until.ts'
import { startWorld } from '../support/world.ts'

const ACCOUNTS = '/trading/v1/options/accounts'
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'

await test('Request metrics have route patterns as labels, and "unmatched" and "other" for unknown paths and methods', async (t) => {
  const { server, browser } = await startWorld(t, { user: 'demo' })
  for (const path of [ACCOUNTS, '/account/v1/nickname']) {
    t.equal((await browser.fetch(`/api${path}`, { headers: { 'x-csrf': '1' } })).status, 200)
  }
  t.equal((await fetch(`${server.url}/api/v1/health`, { headers: { 'x-csrf': '1' } })).status, 200)
  for (const path of ['/nowhere/1', '/nowhere/2']) t.equal((await fetch(server.url + path)).status, 404)
  for (const method of ['PROPFIND', 'MKCOL', 'SEARCH']) {
    const unknown = request(`${server.url}/nowhere`, { method })
    await new Promise<void>((resolve) => {
      unknown.on('response', (response) => response.resume().on('end', resolve)).end()
    })
  }
  // The sixth request is the return of the login to a page that does not exist.
  await until(() => server.log.filter(({ route }) => route === 'unmatched').length === 6)
  const text = await (await fetch(`${server.opsUrl}/metrics`)).text()
  t.match(text, `bff_build_info{version="${program.version}",revision="unknown",node="${process.versions.node}"} 1`)
  const count = (name: string, labels: string) =>
    Number(new RegExp(`^${name}_count{${labels}} (\\d+)$`, 'm').exec(text)?.[1])
  const served = 'bff_http_request_duration_seconds'
  t.equal(count(served, `method="GET",route="/api${ACCOUNTS}",status="200"`), 1)
  t.equal(count(served, 'method="GET",route="unmatched",status="404"'), 3)
  t.equal(count(served, 'method="other",route="unmatched",status="404"'), 3)
  for (const route of [ACCOUNTS, '/account/v1/nickname', '/v1/health']) {
    t.equal(count('bff_upstream_request_duration_seconds', `method="GET",route="${route}"`), 1)
  }
  t.notMatch(text, /nowhere|PROPFIND/)
})

await test('process_open_fds follows the open files of the process, and no metric lists its sockets', async (t) => {
  const { server } = await startWorld(t)
  const scraped = async (): Promise<string> => (await fetch(`${server.opsUrl}/metrics`)).text()
  const openFiles = async (): Promise<number> => Number(/^process_open_fds (\d+)$/m.exec(await scraped())?.[1])
  const before = await openFiles()
  const files = await Promise.all(Array.from({ length: 100 }, () => open(devNull)))
  const more = (await openFiles()) - before
  await Promise.all(files.map((file) => file.close()))
  t.ok(more > 80 && more < 120, `${more} more`)
  t.notMatch(await scraped(), /nodejs_active_/)
})

await test('An event loop that is in time has a lag of 0.05 s, as the alert for it presumes', async (t) => {
  const { server } = await startWorld(t)
  let lag = 0
  await until(async () => {
    const text = await (await fetch(`${server.opsUrl}/metrics`)).text()
    lag = Number(/^nodejs_eventloop_lag_p50_seconds (\S+)$/m.exec(text)?.[1])
    // It is counted anew after each look.
    await new Promise((resolve) => void setTimeout(resolve, 500))
    return lag >= 0.045 && lag <= 0.06
  }, 'the event loop is in time')
})

await test('The log line of a request has the trace_id of a valid traceparent header', async (t) => {
  const { server } = await startWorld(t)
  const loggedTraceId = async (traceparent?: string): Promise<unknown> => {
    const lines = server.log.length
    await fetch(`${server.url}/auth/session`, { headers: traceparent === undefined ? {} : { traceparent } })
    const line = () => server.log.slice(lines).find(({ msg }) => msg === 'request')
    await until(() => line() !== undefined)
    return line()?.['trace_id']
  }
  t.equal(await loggedTraceId(`00-${TRACE}-00f067aa0ba902b7-01`), TRACE)
  t.equal(await loggedTraceId(`01-${TRACE}-00f067aa0ba902b7-01-of-a-later-version`), TRACE)
  for (const invalid of [
    undefined,
    TRACE,
    `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `ff-${TRACE}-00f067aa0ba902b7-01`,
    `00-${TRACE.toUpperCase()}-00f067aa0ba902b7-01`,
    `00-${TRACE}"}-00f067aa0ba902b7-01`,
  ]) {
    t.equal(await loggedTraceId(invalid), undefined)
  }
})
