import { pino } from 'pino'
import { Registry } from 'prom-client'
import { test, type Test } from 'tap'
import { UpstreamLink, type LinkOwner } from '../../src/sockets/feed/upstream-link.ts'
import { WriteBatch } from '../../src/sockets/feed/write-batch.ts'
import { createFeedMetrics } from '../../src/telemetry/feed-metrics.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { until } from '../support/until.ts'

/** A connection that ends with the test, and what its owner is told. */
async function openLink(
  t: Test,
  heartbeatMs?: number,
): Promise<{ upstream: ScriptedUpstream; link: UpstreamLink; told: string[] }> {
  const upstream = await ScriptedUpstream.start(t)
  const told: string[] = []
  const owner: LinkOwner = {
    kind: 'stream',
    isNeeded: () => true,
    opened: () => told.push('opened'),
    unclaimed: () => told.push('unclaimed'),
    lost: () => told.push('lost'),
  }
  const link = new UpstreamLink(
    {
      url: `ws://${upstream.host}/`,
      maxMessageBytes: 1000,
      batch: new WriteBatch(),
      log: pino({ level: 'silent' }),
      metrics: createFeedMetrics(new Registry()),
      heartbeatMs,
    },
    owner,
  )
  t.teardown(() => link.close())
  return { upstream, link, told }
}

await test('a connection of the feed whose upstream goes silent is lost, and opened again', async (t) => {
  const { upstream, link, told } = await openLink(t, 50)
  link.open()
  link.open()
  const socket = await upstream.socket()
  await until(() => link.isOpen)
  const requester = { received: () => told.push('received'), lost: () => told.push('requester lost') }
  const reqId = link.send((id) => `{"time":1,"req_id":${id}}`, requester)
  socket.send(`{"time":1,"req_id":${reqId},"msg_type":"time"}`)
  await until(() => told.includes('received'))
  // It answers no ping from now on.
  socket.pause()
  await until(() => told.filter((what) => what === 'opened').length === 2)
  t.same(told, ['opened', 'received', 'requester lost', 'lost', 'opened'])
  t.equal(upstream.upgrades.length, 2)

  const second = await upstream.socket()
  second.send('x'.repeat(2000))
  await until(() => told.length === 7)
  t.same(told.slice(5), ['lost', 'opened'], 'a message that is too long ends it too')
})

await test('a message that cannot be handled ends its connection and nothing else', async (t) => {
  const { upstream, link, told } = await openLink(t)
  link.open()
  const socket = await upstream.socket()
  await until(() => link.isOpen)
  const faulty = {
    received: () => {
      // As a request with one answer does.
      link.release(reqId)
      throw new Error('a fault of this server')
    },
    lost: () => told.push('the faulty one lost'),
  }
  const reqId = link.send((id) => `{"time":1,"req_id":${id}}`, faulty)
  link.send((id) => `{"time":1,"req_id":${id}}`, { received: () => undefined, lost: () => told.push('another lost') })
  socket.send(`{"time":1,"req_id":${reqId},"msg_type":"time"}`)
  await until(() => told.filter((what) => what === 'opened').length === 2)
  t.same(new Set(told.splice(0)), new Set(['opened', 'the faulty one lost', 'another lost', 'lost']))
  t.equal(link.isOpen, true, 'it is opened again')
})
