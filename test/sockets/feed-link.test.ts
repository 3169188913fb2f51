import { test } from 'tap'
import { Beats } from '../support/feed/beats.ts'
import { openLink } from '../support/feed/open-link.ts'
import { feedWorld, price, tick } from '../support/feed/world.ts'
import { until } from '../support/time/until.ts'

await test('a connection of the feed whose upstream goes silent is lost, and opened again', async (t) => {
  const { upstream, link, told } = await openLink(t, 50)
  link.open()
  link.open()
  const socket = await upstream.socket()
  await until(() => link.isOpen)
  const sender = { received: () => told.push('received'), lost: () => told.push('sender lost') }
  const reqId = link.send((id) => `{"time":1,"req_id":${id}}`, sender)
  socket.send(`{"time":1,"req_id":${reqId},"msg_type":"time"}`)
  await until(() => told.includes('received'))
  // It answers no ping from now on.
  socket.pause()
  await until(() => told.filter((what) => what === 'opened').length === 2)
  t.same(told, ['opened', 'received', 'sender lost', 'lost', 'opened'])
  t.equal(upstream.upgrades.length, 2)

  const second = await upstream.socket()
  second.send('x'.repeat(2000))
  second.send('x'.repeat(5 * 1_048_576))
  await until(() => told.length === 7)
  t.same(told.slice(5), ['lost', 'opened'], 'a message that is far too long ends it too')
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

await test('a connection of the feed asks for a pong every 30 seconds, and is lost without one', async (t) => {
  const beats = new Beats(t)
  const { upstream, link, told, metrics } = await openLink(t)
  link.open()
  const socket = await upstream.socket()
  await until(() => link.isOpen)
  const pings: { ping?: unknown; req_id?: unknown }[] = []
  socket.on('message', (data: Buffer) => {
    const message = JSON.parse(data.toString()) as object
    if ('ping' in message) pings.push(message)
  })
  const sender = { received: () => told.push('received'), lost: () => undefined }
  for (const count of [1, 2]) {
    beats.pass(3)
    await until(() => pings.length === count)
    t.match(pings.at(-1), { ping: 1, req_id: Number })
    // Whatever is answered after the pong shows that the pong has been taken.
    const reqId = link.send((id) => `{"time":1,"req_id":${id}}`, sender)
    const pong = pings.at(-1)?.req_id
    for (const id of [pong, pong, reqId]) socket.send(`{"msg_type":"any","req_id":${String(id)}}`)
    await until(() => told.filter((what) => what === 'received').length === count)
  }
  t.equal((await metrics.unattributed.get()).values[0]?.value, 2, 'a second pong answers nothing')
  beats.pass(3)
  t.equal(link.isOpen, true)
  beats.pass(3)
  t.equal(link.isOpen, false, 'the last ping was not answered')
  t.same(told, ['opened', 'received', 'received', 'lost'])
  await until(() => told.at(-1) === 'opened', 'it is opened again')
  beats.pass(3)
  t.equal(link.isOpen, true, 'the connection before had a ping without an answer')
  t.equal(beats.size, 1)
})

await test('a connection of the feed that nobody needs ends without being lost', async (t) => {
  const beats = new Beats(t)
  let isNeeded = true
  const { upstream, link, told } = await openLink(t, undefined, () => isNeeded)
  link.open()
  const socket = await upstream.socket()
  await until(() => link.isOpen)
  beats.pass(3)
  t.equal(link.isOpen, true)
  isNeeded = false
  beats.pass(3)
  t.equal(link.isOpen, false)
  t.equal(beats.size, 0)
  await until(() => socket.readyState === socket.CLOSED)
  t.same(told, ['opened'])
})

await test('the feed has connections for streams and one for requests, which ends after the last browser', async (t) => {
  const beats = new Beats(t)
  const { market, join, metric } = await feedWorld(t, { FEED_LINGER_SECONDS: '3600' })
  const sockets = async (): Promise<number | undefined> => (await metric('bff_feed_upstream_sockets')).get('')
  market.auto = ({ ping }) => (ping === undefined ? undefined : { msg_type: 'ping', ping: 'pong' })
  t.equal(await sockets(), 0)
  const browser = await join()
  const askTime = async (): Promise<void> => {
    await market.serve(browser, { time: 1 }, { time: 1 })
  }
  await askTime()
  t.equal(await sockets(), 1)
  const stream = await market.serve(browser, { ticks: 'R_1', subscribe: 1 }, price(1))
  t.equal(await sockets(), 2)
  beats.pass(3)
  await until(() => market.asked('ping').length === 2)
  // Whatever is answered after the pongs shows that they have been taken.
  tick(stream, 2)
  await browser.next()
  await askTime()
  t.equal(await sockets(), 2)
  browser.client.socket.terminate()
  await until(async () => (await metric('bff_relays')).get('kind="public"') === 0, 'it is gone')
  beats.pass(3)
  t.equal(await sockets(), 1, 'that of the stream, which lingers')
})

await test('messages that were read together are one batch, and a message that comes alone does not wait', async (t) => {
  const { upstream, link, batch } = await openLink(t)
  link.open()
  const socket = await upstream.socket()
  await until(() => link.isOpen)
  const waits: boolean[] = []
  const sender = { received: () => waits.push(batch.isOpen), lost: () => undefined }
  const reqId = link.send((id) => `{"time":1,"req_id":${id}}`, sender)
  const message = `{"msg_type":"time","req_id":${reqId}}`
  socket.send(message)
  await until(() => waits.length === 1)
  const { _socket: wire } = socket as unknown as { _socket: { cork(): void; uncork(): void } }
  wire.cork()
  for (let count = 0; count < 3; count++) socket.send(message)
  wire.uncork()
  await until(() => waits.length === 4)
  t.equal(batch.isOpen, false)
  socket.send(message)
  await until(() => waits.length === 5)
  t.same(waits, [false, true, true, true, false])
})
