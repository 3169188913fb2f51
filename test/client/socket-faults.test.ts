import { setTimeout as pause } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { test } from 'tap'
import type { Message } from '../../client/dist/client.js'
import { timeAhead } from '../support/time/clock-ahead.ts'
import { failure, pageEvents, reports } from '../support/client/page-client.ts'
import { socketPeer } from '../support/client/socket-peer.ts'
import { untyped } from '../support/client/untyped.ts'
import { until } from '../support/time/until.ts'
import { exactly } from '../support/exactly.ts'
import { sideBySide } from '../support/time/side-by-side.ts'

const texts = (seen: readonly Message[], operation: string): unknown[] =>
  seen.filter((message) => operation in message).map((message) => message[operation])

const RATE_LIMIT = { error: { code: 'RateLimit', message: 'slowly' } }

/** Replies to subscriptions with their subscription id, and with `ok` to the rest. */
function acceptAll(message: Message, send: (body: Message) => void): void {
  if (message['subscribe'] === 1)
    send({ subscription: { id: `of ${String(message['req_id'])}` }, first: message['ticks'] })
  else send({ ok: true })
}

await sideBySide({
  'twenty streams are subscribed again after a reconnect, and a refused one until it is accepted': async (t) => {
    const world = await socketPeer(t)
    world.reply = acceptAll
    const socket = world.client.publicSocket()
    const [firsts, errors]: [string[], string[]] = [[], []]
    const symbols = Array.from({ length: 20 }, (_, n) => `R_${n}`)
    for (const ticks of symbols) {
      untyped(socket).subscribe(
        { ticks },
        ({ first }) => firsts.push(String(first)),
        ({ code }) => errors.push(code),
      )
    }
    await until(() => firsts.length === 20)
    let refusals = 0
    world.reply = (message, send) =>
      message['ticks'] === 'R_7' && refusals++ < 2 ? send(RATE_LIMIT) : acceptAll(message, send)
    world.sockets[0]?.terminate()
    await until(() => firsts.length === 40)
    t.same(errors, ['RateLimit', 'RateLimit'])
    t.same(new Set(firsts.slice(20)), new Set(symbols))
    const again = world.seen.filter(({ on }) => on === 2)
    t.same([again.length, new Set(texts(again, 'ticks')).size], [22, 20])
    t.equal(texts(again, 'ticks').filter((symbol) => symbol === 'R_7').length, 3)
  },

  'a stream that is stopped while it is refused is not requested again': async (t) => {
    const world = await socketPeer(t)
    world.reply = (_message, send) => send(RATE_LIMIT)
    const socket = world.client.publicSocket()
    const stop = socket.subscribe(
      { ticks: 'R_1' },
      () => undefined,
      () => stop(),
    )
    await until(() => world.seen.length === 1)
    await pause(2200)
    t.equal(world.seen.length, 1)
  },

  'after close(), a command under way has the code closed and an unknown outcome, and no listener is called but for the end':
    async (t) => {
      const world = await socketPeer(t)
      world.reply = () => undefined
      const socket = world.client.tradingSocket('VRTC100')
      const other = world.client.tradingSocket('VRTC100')
      await until(() => socket.status().state === 'open')
      const command = untyped(socket).command({ buy: 1 })
      await until(() => world.seen.length === 1)
      let calls = 0
      const states: string[] = []
      socket.listen(() => calls++)
      socket.onStatus(() => states.push(socket.status().state))
      socket.onStatus(() => calls++)()
      socket.close()
      socket.close()
      socket.listen(() => calls++)
      socket.onStatus(() => calls++)
      t.match(await failure(command), { code: 'closed', outcome: 'unknown' })
      world.reply = (_message, send) => send({ ok: true })
      await other.request({ time: 1 })
      world.sockets[0]?.terminate()
      await until(() => world.sockets.length === 2 && other.status().state === 'open')
      t.equal(calls, 0)
      t.same([states, socket.status()], [['ended'], { state: 'ended', code: 1000, reason: '' }])
      t.equal(socket.status(), socket.status())
    },
})

await test('a stopped stream whose end is refused is forgotten when its next message arrives', async (t) => {
  const world = await socketPeer(t)
  world.reply = acceptAll
  const socket = world.client.publicSocket()
  let first = 0
  const stop = socket.subscribe({ ticks: 'R_1' }, () => first++)
  await until(() => first === 1)
  world.reply = (_message, send) => send(RATE_LIMIT)
  stop()
  await until(() => texts(world.seen, 'forget').length === 1)
  // The refusal has arrived before the reply to this request.
  await failure(socket.request({ time: 1 }))
  const id = world.seen[0]?.['req_id']
  for (let n = 0; n < 3; n++) {
    world.sockets[0]?.send(JSON.stringify({ req_id: id, subscription: { id: `of ${String(id)}` }, tick: n }))
  }
  await until(() => texts(world.seen, 'forget').length === 2)
  await failure(socket.request({ time: 1 }))
  t.same([texts(world.seen, 'forget').length, first], [2, 1])
})

await test('messages that are not what they should be are ignored, and no other subscription is forgotten', async (t) => {
  const reported = reports(t)
  const world = await socketPeer(t)
  world.reply = acceptAll
  const socket = world.client.publicSocket()
  const received: unknown[] = []
  const stop = socket.subscribe({ ticks: 'R_1' }, () => undefined)
  // Stopped before it was requested.
  stop()
  const isOpen = (): boolean => socket.status().state === 'open'
  await until(isOpen)
  socket.listen((message) => received.push(message))
  for (const text of [
    'not JSON',
    '',
    'null',
    '5',
    '"text"',
    '[]',
    '{"error":"text"}',
    '{"error":null,"subscription":null}',
  ]) {
    world.sockets[0]?.send(text)
  }
  world.sockets[0]?.send(Buffer.from([0xff, 0]))
  world.sockets[0]?.send('{"req_id":null,"subscription":{"id":"of a stranger"}}')
  world.sockets[0]?.send('{"req_id":"a","subscription":{"id":"of a stranger"}}')
  await pause(150)
  t.match(await socket.request({ time: 1 }), { ok: true })
  t.same(texts(world.seen, 'forget'), [])
  t.ok(received.length > 3 && isOpen())
  t.same(reported, [])
})

await test('the req_id of the page is replaced, and what a page changes after a call is not sent', async (t) => {
  const pass = timeAhead(t)
  const world = await socketPeer(t)
  const socket = world.client.tradingSocket('VRTC100')
  const first: Record<string, unknown> = { time: 1, req_id: 1, passthrough: { n: 1 } }
  const second = { time: 1, req_id: 1, passthrough: { n: 2 } }
  world.reply = (message, send) => send({ passthrough: message['passthrough'] })
  const replies = [untyped(socket).request(first), untyped(socket).request(second)]
  first['passthrough'] = { n: 3 }
  t.match(await Promise.all(replies), [{ passthrough: { n: 1 } }, { passthrough: { n: 2 } }])
  t.equal(new Set(texts(world.seen, 'req_id')).size, 2)
  // During the silence before a ping, a page may reuse its object, too.
  pass(3100)
  const order: Record<string, unknown> = { buy: 'a-proposal', price: 10 }
  const bought = untyped(socket).command(order)
  order['price'] = 99
  await bought
  t.match(world.seen.at(-1), { buy: 'a-proposal', price: 10 })
})

await test('a message that is no JSON rejects, and the messages that wait beside it are sent', async (t) => {
  const world = await socketPeer(t)
  const socket = world.client.tradingSocket('VRTC100')
  const [bad, good] = [untyped(socket).request({ time: 1n }), untyped(socket).request({ time: 2 })]
  t.match(await failure(bad), { name: 'TypeError' })
  t.match(await good, { ok: true })
  t.match(await failure(untyped(socket).command({ buy: 1n })), { name: 'TypeError' })
  t.same(texts(world.seen, 'time'), [2])
})

await test('an undefined timeoutMs is the default, and an infinite one does not end at once', async (t) => {
  const world = await socketPeer(t)
  world.reply = (_message, send) => void setTimeout(() => send({ ok: true }), 100)
  const socket = world.client.tradingSocket('VRTC100')
  for (const timeoutMs of [undefined, Infinity]) {
    t.match(await socket.request({ time: 1 }, { timeoutMs }), { ok: true })
    t.match(await untyped(socket).command({ buy: 1 }, { timeoutMs }), { ok: true })
  }
})

await test('a listener that another listener has stopped is not called for the same message', async (t) => {
  const reported = reports(t)
  const world = await socketPeer(t)
  const socket = world.client.publicSocket()
  const called: string[] = []
  socket.listen(() => {
    called.push('first')
    stop()
    throw new Error('a fault of the page')
  })
  const stop = socket.listen(() => called.push('second'))
  socket.listen(() => called.push('third'))
  await until(() => called.length >= 2)
  t.same(called.slice(0, 2), ['first', 'third'])
  t.match(reported[0], { message: 'a fault of the page' })
})

await test('a browser that refuses the address: the page hears of it, and the socket waits', async (t) => {
  const reported = reports(t)
  let isRefused = true
  class PageSocket extends WebSocket {
    constructor(url: string) {
      if (isRefused) throw new DOMException('The operation is insecure.', 'SecurityError')
      super(url)
    }
  }
  const world = await socketPeer(t, { WebSocket: PageSocket as never })
  const socket = world.client.publicSocket()
  await until(() => socket.status().retryAt !== undefined)
  t.match(socket.status(), { state: 'waiting', code: 1006 })
  t.match(reported, exactly({ name: 'SecurityError' }))
  isRefused = false
  t.match(await socket.request({ time: 1 }), { ok: true })
})

await test('a server that closes every connection after a message is asked less and less often', async (t) => {
  // The delays are then a second, two, four.
  t.intercept(Math, 'random', { value: () => 1 })
  const world = await socketPeer(t)
  const socket = world.client.publicSocket()
  const delays: number[] = []
  socket.onStatus(() => {
    const { state, retryAt = 0 } = socket.status()
    if (state === 'open') world.sockets.at(-1)?.close(1011)
    if (state === 'waiting' && retryAt > 0) delays.push(Math.round((retryAt - Date.now()) / 1000))
  })
  await until(() => delays.length === 2)
  // 1011 has a minimum delay of five seconds.
  t.same(delays, [6, 7])
})

await test('a page that returns from the back/forward cache keeps the delay that the server asked for', async (t) => {
  const page = pageEvents(t)
  const world = await socketPeer(t)
  const socket = world.client.publicSocket()
  await until(() => socket.status().state === 'open')
  world.sockets[0]?.close(4429, 'upstream_budget;retry_after=60')
  await until(() => socket.status().retryAt !== undefined)
  const { retryAt } = socket.status()
  for (const name of ['pagehide', 'pageshow']) page.dispatchEvent(Object.assign(new Event(name), { persisted: true }))
  t.match(socket.status(), { state: 'waiting', code: 4429, reason: 'upstream_budget' })
  t.ok(Math.abs(Number(socket.status().retryAt) - Number(retryAt)) < 1000)
  await pause(1200)
  t.equal(world.sockets.length, 1)
})
