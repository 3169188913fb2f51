import { once } from 'node:events'
import { createServer } from 'node:http'
import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { ok, rawUpstream } from '../support/upstream/raw-upstream.ts'
import { restClient } from '../support/upstream/rest-client.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until, within } from '../support/time/until.ts'
import { TRADING } from '../support/user.ts'
import { startWorld, RELAY } from '../support/world.ts'

await test('a call waits for a free connection for UPSTREAM_CONNECT_SECONDS at most', async (t) => {
  const upstream = await rawUpstream(t)
  const rest = restClient(t, upstream, 2, { UPSTREAM_CONNECT_SECONDS: '1', UPSTREAM_HEADERS_SECONDS: '600' })
  const ask = (path: string) => rest.exchange({ method: 'POST', path, template: path, headers: [], body: null })
  const answers: (() => void)[] = []
  upstream.answer = (_request, socket) => void answers.push(() => void socket.write(ok()))
  const taken = [upstream.next(), upstream.next()]
  const first = [ask('/1'), ask('/2')]
  await Promise.all(taken)

  const late = await Promise.all([ask('/3'), ask('/4')])
  for (const outcome of late) t.match(outcome, { is: 'unreachable', cause: /free/ }, 'no byte was sent')
  for (const answer of answers) answer()
  for (const outcome of await Promise.all(first))
    t.match(outcome, { is: 'answered' }, 'the calls that have a connection are served')

  upstream.answer = (_request, socket) => void socket.write(ok())
  t.match(await Promise.all([ask('/5'), ask('/6'), ask('/7')]), [{ is: 'answered' }, {}, { is: 'answered' }])
  const seen = upstream.requests.map(({ target }) => target).sort()
  t.same(seen, ['/1', '/2', '/5', '/6', '/7'], 'a call that gave up is not sent afterwards')
})

await test('calls that gave up, or whose browsers have left, while they waited cost upstream no connection, and those behind them no time', async (t) => {
  const upstream = await rawUpstream(t)
  const rest = restClient(t, upstream, 2, { UPSTREAM_CONNECT_SECONDS: '1', UPSTREAM_HEADERS_SECONDS: '600' })
  const left = new AbortController()
  const ask = (path: string, signal?: AbortSignal) =>
    rest.exchange({ method: 'POST', path, template: path, headers: [], body: null }, signal)
  const answers: (() => void)[] = []
  upstream.answer = (_request, socket) => void answers.push(() => void socket.write(ok()))
  const first = [ask('/1'), ask('/2')]
  await until(() => answers.length === 2)
  const unwanted = Array.from({ length: 40 }, (_, at) => ask('/unwanted', at % 2 === 0 ? left.signal : undefined))
  left.abort(new Error('the browser left'))
  for (const { is } of await Promise.all(unwanted)) t.equal(is, 'unreachable')
  upstream.answer = (_request, socket) => void socket.write(ok())
  const behind = ask('/3')
  for (const answer of answers) answer()
  t.match(await Promise.all([...first, behind]), [{ is: 'answered' }, { is: 'answered' }, { is: 'answered' }])
  t.same(upstream.requests.map(({ target }) => target).sort(), ['/1', '/2', '/3'])
  // After a standstill there are new ones.
  t.ok(upstream.received.length < 10, 'connections')
})

await test('where connections are refused, those that wait for one learn of it, and the next call tries again', async (t) => {
  const upstream = await rawUpstream(t)
  const port = await freePort()
  const rest = restClient(t, { ...upstream, url: `http://127.0.0.1:${port}` }, 1, { UPSTREAM_CONNECT_SECONDS: '600' })
  const ask = () => rest.exchange({ method: 'POST', path: '/', template: '/', headers: [], body: null })
  for (const outcome of await within(Promise.all([ask(), ask(), ask()]), 'all are told')) {
    t.match(outcome, { is: 'unreachable', cause: { code: 'ECONNREFUSED' } })
  }
  const server = createServer((_request, response) => response.end()).listen(port, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  t.match(await Promise.all([ask(), ask()]), [{ is: 'answered' }, { is: 'answered' }])
})

await test('the limit of the wait for a connection ends when the call is sent', async (t) => {
  const upstream = await rawUpstream(t)
  const limits = new HeldTimers(t, 'setTimeout', 7000)
  const rest = restClient(t, upstream, 1, { UPSTREAM_CONNECT_SECONDS: '7', UPSTREAM_HEADERS_SECONDS: '600' })
  const ask = (path: string) => rest.exchange({ method: 'POST', path, template: path, headers: [], body: null })
  const answers: (() => void)[] = []
  upstream.answer = (_request, socket) => void answers.push(() => void socket.write(ok()))
  const [first, waiting] = [ask('/1'), ask('/2')]
  await until(() => answers.length === 1)
  answers[0]?.()
  await until(() => answers.length === 2, 'the second one is sent')
  limits.run()
  // The limit is judged once what has arrived was read.
  await turn()
  await turn()
  answers[1]?.()
  t.match(await Promise.all([first, waiting]), [{ is: 'answered' }, { is: 'answered' }])
})

await test('requests for one-time URLs use connections of their own', async (t) => {
  const { upstream, browser, socket } = await startWorld(t, RELAY)
  const ports: (number | undefined)[] = []
  const { onOtp, onRest } = upstream
  upstream.onOtp = (request, response) => {
    ports.push(request.socket.remotePort)
    onOtp(request, response)
  }
  upstream.onRest = (request, response) => {
    ports.push(request.socket.remotePort)
    onRest(request, response)
  }
  const call = () => browser.fetch('/api/trading/v1/options/accounts', { headers: { 'x-csrf': '1' } })
  t.equal((await call()).status, 200)
  t.equal((await call()).status, 200)
  await socket(TRADING).opened()
  t.equal(ports[0], ports[1], 'API calls share a connection')
  t.not(ports[2], ports[0], 'the request for a one-time URL has its own')
})
