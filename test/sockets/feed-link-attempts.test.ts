import type { Duplex } from 'node:stream'
import { test, type Test } from 'tap'
import type { ScriptedUpstream } from '../support/upstream/scripted-upstream.ts'
import { Beats } from '../support/feed/beats.ts'
import { openLink } from '../support/feed/open-link.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { nextEvent, until, within } from '../support/time/until.ts'

const FAILED = 'upstream refused a socket of the feed'

/** The first pause after a failure, and the next one, each as long as it may be. */
function heldPauses(t: Test): { first: HeldTimers; second: HeldTimers } {
  t.intercept(Math, 'random', { value: () => 0 })
  return { first: new HeldTimers(t, 'setTimeout', 100), second: new HeldTimers(t, 'setTimeout', 200) }
}

/** Resolves once upstream has seen whatever had been sent to it. */
async function settled(upstream: ScriptedUpstream): Promise<void> {
  for (let count = 0; count < 3; count++) await fetch(`http://${upstream.host}/`)
}

await test('a connection of the feed that failed is tried again after its pause, and not before', async (t) => {
  const { first, second } = heldPauses(t)
  const { upstream, link, logged } = await openLink(t)
  upstream.onUpgrade = (_request, socket) => void socket.destroy()
  link.open()
  await until(() => first.size === 1)
  link.open()
  await settled(upstream)
  t.equal(upstream.upgrades.length, 1)
  first.run()
  await until(() => second.size === 1)
  t.equal(upstream.upgrades.length, 2)
  t.equal(logged[0], FAILED)
  link.end()
  t.equal(second.size, 0)
})

await test('once a connection has brought an answer, the pauses are short again', async (t) => {
  const { first, second } = heldPauses(t)
  const { upstream, link, told } = await openLink(t)
  const lose = async (): Promise<void> => (await upstream.socket()).terminate()
  link.open()
  await lose()
  await until(() => first.size === 1)
  first.run()
  await lose()
  await until(() => second.size === 1, 'it has brought none')
  second.run()
  const socket = await upstream.socket()
  await until(() => link.isOpen)
  const reqId = link.send((id) => `{"time":1,"req_id":${id}}`, {
    received: () => told.push('received'),
    lost: () => undefined,
  })
  socket.send(`{"time":1,"req_id":${reqId}}`)
  await until(() => told.includes('received'))
  socket.terminate()
  await until(() => first.size === 1)
  t.equal(second.size, 0)
})

await test('a connection of the feed that is lost when nobody needs it is not opened again', async (t) => {
  const { first } = heldPauses(t)
  const { upstream, link, told } = await openLink(t, undefined, () => false)
  link.open()
  const socket = await upstream.socket()
  await until(() => link.isOpen)
  socket.terminate()
  await until(() => told.includes('lost'))
  t.equal(first.size, 0)
})

await test('a connection of the feed that is closed while it opens lets go at once, without a word', async (t) => {
  const { upstream, link, told, logged } = await openLink(t)
  const upgraded = new Promise<Duplex>((resolve) => {
    upstream.onUpgrade = (_request, socket) => resolve(socket)
  })
  link.open()
  const socket = await within(upgraded, 'a handshake')
  socket.resume()
  link.end()
  // A handshake that nobody gives up takes 10 seconds.
  await nextEvent(socket, 'end', 5000)
  socket.end()
  await settled(upstream)
  t.same(told, [])
  t.same(logged, [])
  t.equal(upstream.upgrades.length, 1)
})

await test('a connection of the feed that is closed stays closed', async (t) => {
  const { upstream, link, told } = await openLink(t)
  link.open()
  const socket = await upstream.socket()
  await until(() => link.isOpen)
  link.end()
  await nextEvent(socket, 'close')
  link.open()
  await settled(upstream)
  t.equal(upstream.upgrades.length, 1)
  t.same(told, ['opened'])
})

await test('what arrives on a connection of the feed that is lost is for nobody', async (t) => {
  const beats = new Beats(t)
  const { upstream, link, told, metrics } = await openLink(t)
  link.open()
  const socket = await upstream.socket()
  await until(() => link.isOpen)
  beats.pass(3)
  beats.pass(3)
  t.equal(link.isOpen, false, 'the ping was not answered')
  socket.send('{"msg_type":"tick","subscription":{"id":"late"},"req_id":7}')
  await nextEvent(socket, 'close')
  await until(() => link.isOpen)
  t.same(told, ['opened', 'lost', 'opened'])
  t.same((await metrics.unattributed.get()).values, [{ value: 0, labels: {} }])
})

await test('a connection that was not needed for a while has not been lost', async (t) => {
  const beats = new Beats(t)
  let isNeeded = true
  const { upstream, link, told, metrics } = await openLink(t, undefined, () => isNeeded)
  const reconnects = async (): Promise<unknown> => (await metrics.reconnects.get()).values[0]?.value
  link.open()
  const first = await upstream.socket()
  await until(() => link.isOpen)
  first.terminate()
  await until(() => told.length === 3)
  t.equal(await reconnects(), 1)
  link.send((id) => `{"time":1,"req_id":${id}}`, { received: () => undefined, lost: () => told.push('sender lost') })
  isNeeded = false
  beats.pass(3)
  t.equal(link.isOpen, false)
  isNeeded = true
  link.open()
  await until(() => link.isOpen)
  t.equal(await reconnects(), 1)
  await upstream.socket()
  const third = await upstream.socket()
  third.terminate()
  await until(() => told.length === 7)
  t.same(told, ['opened', 'lost', 'opened', 'sender lost', 'opened', 'lost', 'opened'], 'its owner lost nothing')
})
