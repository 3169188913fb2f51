import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { test, type Test } from 'tap'
import type { WebSocket } from 'ws'
import { names } from '../../src/peers/names.ts'
import { ok, relayRoutesOf } from '../support/sockets/relay-routes-of.ts'

type Options = Parameters<typeof relayRoutesOf>[1]

/** Routes of relays, and the end of the next socket that reaches upstream. */
async function world(t: Test, options?: Options) {
  const routes = await relayRoutesOf(t, options)
  const upstream = once(routes.server, 'connection').then(([socket]) => socket as WebSocket)
  return { ...routes, upstream }
}

const stop = () => undefined
const nextMessage = async (socket: WebSocket) => String((await once(socket, 'message'))[0])

await test('a browser is joined to upstream, and comes back when upstream leaves', async (t) => {
  const { join, upstream, logged } = await world(t)
  const browser = await join()
  const peer = await upstream
  t.ok(logged().includes('joins'))
  const message = nextMessage(peer)
  browser.says('{"ticks":"R_100"}')
  t.equal(await message, '{"ticks":"R_100"}')
  peer.send('tick')
  peer.close(4999, 'over')
  await once(peer, 'close')
  t.same(browser.got, ['tick', 'close 4999 over;retry_after=9'])
  const log = logged()
  t.ok(log.includes('leaves'))
  t.ok(log.includes('process released'))
  t.notOk(log.includes('upstream broke the WebSocket protocol'))
})

await test('market data, or a server without places, names no time to come back', async (t) => {
  for (const [path, deps] of [
    ['/ws/public', {}],
    [undefined, { returns: undefined }],
  ] as const) {
    const { join, upstream, logged } = await world(t, { deps })
    const browser = await join(path)
    const peer = await upstream
    peer.close(4999, 'over')
    await once(peer, 'close')
    t.same(browser.got, ['close 4999 over'])
    t.notOk(logged().includes('joins'))
  }
})

await test('the connection of a browser that has left is noted until upstream has closed it', async (t) => {
  const rests: unknown[] = []
  const registry = { isClosing: false, add: () => stop, rest: (...noted: unknown[]) => rests.push(noted) }
  const { join, upstream } = await world(t, { deps: { registry } })
  const browser = await join()
  const closed = once(await upstream, 'close')
  browser.emit('close', 1001, Buffer.alloc(0))
  t.match(rests, [[{ destroyed: false }, Function]])
  await closed
})

await test('messages of a browser pass the gate of its user where operators have controls', async (t) => {
  const controls = {
    verdictOn: () => ({ is: 'paused', closing: false, message: 'maintenance' }),
    metrics: { refusals: { inc: () => undefined } },
    onPauseOf: () => stop,
  }
  const { join } = await world(t, { deps: { controls } })
  const browser = await join()
  browser.says('{"buy":"proposal","price":1}')
  t.match(browser.got, [/orders_paused|maintenance/])
  browser.emit('close', 1005, Buffer.alloc(0))
})

await test('an upstream that breaks the protocol is logged with the request that opened its socket', async (t) => {
  const { join, server, upstream, logged } = await world(t)
  const wire = once(server, 'connection').then(([, { socket }]) => socket as Socket)
  const browser = await join()
  ;(await wire).write(Buffer.from([0xff, 0x00]))
  await once(await upstream, 'close')
  t.same(browser.got, ['close 1013 upstream_lost;retry_after=9'])
  const log = logged()
  const at = log.indexOf('upstream broke the WebSocket protocol')
  t.match(log.slice(at - 1, at + 2), [
    { reqId: 'request' },
    'upstream broke the WebSocket protocol',
    { kind: 'demo', why: /^WS_ERR_/, count: 1 },
  ])
})

await test('a socket that upstream refuses is closed with the reason and a time to come back, and logged', async (t) => {
  const { join, logged } = await world(t, { admits: () => false })
  t.same((await join()).got, ['close 1013 upstream_error;retry_after=5'])
  await nextTurn()
  const log = logged()
  t.ok(log.includes('upstream_error'))
  t.notOk(log.includes('reread'), 'nobody needs the session any more')
  t.notOk(log.includes('a relay could not be opened'))
  t.same(log[log.indexOf('upstream refused a socket') + 1], { why: 'status 401', kind: 'demo', count: 1 })
  const other = await world(t, { admits: () => false, deps: { returns: undefined } })
  t.same((await other.join()).got, ['close 1013 upstream_error'])
})

await test('a one-time URL that upstream refuses is logged without its account', async (t) => {
  const { world: parts, trading, logged } = await world(t)
  parts.answers = [{ is: 'answered', response: { status: 410, headers: {}, body: '' } }]
  await trading()
  const log = logged()
  t.notOk(log.includes('a relay could not be opened'))
  const at = log.indexOf('no one-time URL for a relay')
  t.same(log[at + 1], { why: 'status 410', code: 1013, count: 1 })
})

await test('a browser that leaves while upstream opens leaves nothing open, and no word in the log', async (t) => {
  const routes = await world(t, {
    admits: () => {
      leave()
      return true
    },
  })
  const { request, handled, leave } = routes.begin('/ws/trading/:accountId', 'VRTC1')
  await handled
  t.equal(request.handshake?.isOver, true)
  const log = routes.logged()
  t.ok(log.includes('browser_left'))
  t.notOk(log.includes('upstream refused a socket'))
})

await test('a browser that leaves while its one-time URL is asked for gets no second one, and no word in the log', async (t) => {
  for (const status of [401, 500]) {
    const { world: parts, begin, logged } = await world(t)
    parts.answers = [{ is: 'answered', response: { status, headers: {}, body: '' } }]
    parts.asked = () => leave()
    const { handled, leave } = begin('/ws/trading/:accountId', 'VRTC1')
    await handled
    await nextTurn()
    const log = logged()
    t.ok(log.includes('browser_left'))
    t.equal(log.filter(Array.isArray).length, 1)
    t.notOk(log.includes('no one-time URL for a relay'))
  }
})

await test('a session that has ended meanwhile leaves no socket open at upstream', async (t) => {
  const {
    world: parts,
    trading,
    upstream,
    logged,
  } = await world(t, {
    admits: () => {
      parts.reread = { is: 'none' }
      return true
    },
  })
  t.equal(await trading(), undefined)
  await once(await upstream, 'close')
  t.ok(logged().includes('session_expired'))
})

await test('a socket that is refused before its account is known counts as one of trading', async (t) => {
  const { world: parts, join, logged } = await world(t)
  parts.permits.process = false
  t.same((await join()).got, ['close 4429 too_many_relays'])
  t.ok(logged().some((entry) => JSON.stringify(entry) === '{"kind":"trading","code":"4429"}'))
})

await test('a server without a limit of calls counts none', async (t) => {
  const { trading } = await world(t, { deps: { callLimit: undefined } })
  t.equal(await trading(), 'demo')
})

await test('the name of a one-time URL takes no place of market data, unless it is the same', async (t) => {
  const peers: string[] = []
  t.intercept(names, 'for', {
    value: (peer: string) => {
      peers.push(peer)
      return (_host: string, _options: object, answer: (...args: unknown[]) => void) =>
        answer(null, [{ address: '127.0.0.1', family: 4 }])
    },
  })
  const { world: parts, server, trading, open } = await world(t, { host: 'upstream.test' })
  parts.permits.process = false
  t.equal(await open('/ws/public'), undefined)
  t.same(peers, [], 'without a permit nothing is opened')
  parts.permits.process = true
  t.equal(await trading(), 'demo')
  const { port } = server.address() as AddressInfo
  parts.answers = [ok(`ws://other.test:${port}/real`)]
  t.equal(await trading(), 'real')
  t.same(peers, ['sockets', 'other'])
})
