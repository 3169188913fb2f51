import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { test, type Test } from 'tap'
import { codeOf, keyedWorld } from '../support/idempotency/keyed-world.ts'
import { TRANSFER } from '../support/user.ts'
import { ready, serverProcess } from '../support/server/server-process.ts'
import { slowNames } from '../support/upstream/slow-names.ts'
import { asleep } from '../support/time/stopped-process.ts'
import { until, untilSlow } from '../support/time/until.ts'
import { CLIENT_ID, SECRETS } from '../support/server/test-server.ts'

/** Long enough for every wait of these tests. */
const PATIENT = { UPSTREAM_CONNECT_SECONDS: '600' }
/** A host that only the name server of {@link gate} knows. */
const SLOW_HOST = 'slow.test'
const BODY = '{"amount":1}'

/** A gate for the name server of another process, which answers about {@link SLOW_HOST} when the gate says so. */
async function gate(t: Test) {
  const waiting = new Set<Socket>()
  const server = createServer((socket) => waiting.add(socket.on('error', () => undefined))).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of waiting) socket.destroy()
    server.close()
  })
  const hook = `import dns from 'node:dns'
    import { connect } from 'node:net'
    const { lookup } = dns
    dns.lookup = (host, options, answer) => {
      if (host !== '${SLOW_HOST}') return lookup(host, options, answer)
      connect(${(server.address() as AddressInfo).port}, '127.0.0.1').on('error', () => undefined).once('data', () =>
        options.all ? answer(null, [{ address: '127.0.0.1', family: 4 }]) : answer(null, '127.0.0.1', 4))
    }`
  return {
    waiting,
    nodeOptions: ['--import', `data:text/javascript,${encodeURIComponent(hook)}`],
    open: () => {
      for (const socket of waiting) socket.write('go')
    },
  }
}

await test('a call whose process sleeps until another instance calls it lost is not sent when it wakes up', async (t) => {
  const { settings: shared, upstream, cookie, order, other } = await keyedWorld(t)
  const { waiting, nodeOptions, open } = await gate(t)
  const API_URL = upstream.url.replace('127.0.0.1', SLOW_HOST)
  const settings = { ...shared, ...PATIENT, CLIENT_ID, SESSION_SECRETS: SECRETS, API_URL }
  const holder = await serverProcess(t, settings, { nodeOptions })
  t.ok(await ready(holder))
  const headers = { cookie, 'x-csrf': '1', 'idempotency-key': 'slept' }
  // Not sendTo(), which does not wait for that long.
  const first = fetch(`http://127.0.0.1:${holder.port}${TRANSFER}`, { method: 'POST', headers, body: BODY })
  first.catch(() => undefined)
  await until(() => waiting.size === 1, 'the call waits for its connection')
  t.equal(codeOf(await order({ key: 'slept', at: other })), 'idempotency_in_progress')
  await asleep(Number(holder.child.pid), async () => {
    await untilSlow(
      async () => codeOf(await order({ key: 'slept', at: other })) === 'outcome_unknown',
      'it counts as lost',
    )
    open()
  })
  t.match(
    await (await first).json(),
    { code: 'outcome_unknown', outcome: 'unknown' },
    'it says what the other instance has said',
  )
  t.equal(codeOf(await order({ key: 'slept', at: other })), 'outcome_unknown')
  t.same(upstream.requests, [])
})

await test('a call whose record is replaced while it waits for a connection is not sent', async (t) => {
  const { upstream, order, instance, storeClient } = await keyedWorld(t)
  const names = slowNames(t)
  const slow = await instance({ ...PATIENT, API_URL: upstream.url.replace('127.0.0.1', names.host) })
  const first = order({ key: 'replaced', at: slow })
  await until(() => names.waiting === 1, 'the call waits for its connection')
  const client = await storeClient()
  const [key = ''] = await client.keys('bff:1:idempotency:*')
  await client.set(key, 'of another instance', { expiration: 'KEEPTTL' })
  await until(() => slow.log.some(({ outcome }) => outcome === 'record_lost'), 'the instance knows')
  names.release()
  t.match(await first, { status: 409, json: { code: 'idempotency_in_progress' } }, 'there, as far as is known')
  t.same(upstream.requests, [])
})

await test('a call that waits for a connection for longer than its key counts is not sent', async (t) => {
  const { upstream, order, instance } = await keyedWorld(t, { IDEMPOTENCY_TTL_SECONDS: '1' })
  const names = slowNames(t)
  const slow = await instance({ ...PATIENT, API_URL: upstream.url.replace('127.0.0.1', names.host) })
  const first = order({ key: 'short', at: slow })
  await until(() => names.waiting === 1, 'the call waits for its connection')
  await until(async () => (await order({ key: 'short' })).status === 200, 'the key is new again')
  names.release()
  await first
  t.equal(upstream.requests.length, 1)
})
