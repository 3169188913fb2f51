import type { Socket } from 'node:net'
import { PassThrough, Readable } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'tap'
import { standstill } from '../../src/time/standstill.ts'
import { clockAhead } from '../support/time/clock-ahead.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until } from '../support/time/until.ts'
import { clientOf, CONNECT_MS } from '../support/upstream/client-of.ts'
import { gone, ok } from '../support/upstream/raw-upstream.ts'

/** As long as a client waits for its unfinished requests when it closes. */
const GRACE_MS = 5000

await test('only a request for which no connection is free has a limit of that wait', async (t) => {
  const waits = new HeldTimers(t, 'setTimeout', CONNECT_MS)
  const { ask, forward, hold, held } = await clientOf(t, { connections: 1 })
  await ask('/0')
  hold()
  const first = ask('/1')
  await until(() => held.length === 1)
  t.equal(waits.size, 0)
  const second = ask('/2')
  const third = forward('/3')
  t.equal(waits.size, 2)
  held[0]?.write(ok())
  await until(() => held.length === 2)
  held[1]?.write(ok())
  await until(() => held.length === 3)
  held[2]?.write(ok())
  t.match(await Promise.all([first, second, third]), [{ is: 'answered' }, { is: 'answered' }, { is: 'answered' }])
  await turn()
  const last = ask('/4')
  t.equal(waits.size, 0)
  await until(() => held.length === 4)
  held[3]?.write(ok())
  await last
})

await test('more than 1,024 calls that wait are refused, whose bodies nobody reads', async (t) => {
  const { forward, hold, held } = await clientOf(t, { connections: 1 })
  hold()
  const browsers = Array.from({ length: 1025 }, () => new PassThrough())
  const calls = browsers.map((browser, at) => forward(`/${at}`, browser))
  // On a busy machine so many calls are a standstill, after which there is a second connection.
  await until(() => held.length > 0)
  const body = new Readable({ read: () => undefined })
  const outcome = await forward('/last', new PassThrough(), { method: 'POST', body })
  t.match(outcome, { is: 'unreachable', cause: { message: 'too many requests are waiting for upstream' } })
  t.equal(body.destroyed, true)
  for (const browser of browsers) browser.destroy()
  for (const outcomeOf of await Promise.all(calls)) t.equal(outcomeOf.is, 'browserGone')
  const before = held.length
  const last = forward('/again')
  await until(() => held.length > before)
  held.at(-1)?.write(ok())
  t.match(await last, { is: 'answered' })
})

await test('new requests get new connections once the old ones have been used for long enough, and lose nothing', async (t) => {
  const ahead = clockAhead(t)
  const { ask, hold, held, upstream, rest } = await clientOf(t, { connections: 1 })
  const connectionOf = async (path: string) => {
    t.match(await ask(path), { is: 'answered' })
    await turn()
    return upstream.requests.at(-1)?.connection
  }
  t.same([await connectionOf('/1'), await connectionOf('/2')], [1, 1])
  hold()
  const old = ask('/old')
  await until(() => held.length === 1)
  upstream.answer = (_, socket) => void socket.write(ok())
  // Steps that are too short for a standstill.
  const before = standstill.count
  for (const step of [400, 400, 400]) {
    ahead(step)
    t.equal(standstill.count, before)
  }
  const waits = new HeldTimers(t, 'setTimeout', CONNECT_MS)
  const fresh = connectionOf('/3')
  t.equal(waits.size, 1, 'that of the new connection alone')
  t.equal(await fresh, 2)
  const closed = rest.close()
  held[0]?.write(ok())
  t.match(await old, { is: 'answered' }, 'what has begun on an old connection ends there')
  await closed
})

await test('connections from before a standstill are not used again', async (t) => {
  const ahead = clockAhead(t)
  const { ask, upstream } = await clientOf(t)
  await ask('/1')
  await turn()
  ahead(600)
  await ask('/2')
  await turn()
  await ask('/3')
  t.same(
    upstream.requests.map(({ connection }) => connection),
    [1, 2, 2],
  )
})

await test('those that wait for an old connection are the first to get new ones', async (t) => {
  const ahead = clockAhead(t)
  const { ask, hold, held, upstream } = await clientOf(t, { connections: 1 })
  hold()
  const first = ask('/1')
  await until(() => held.length === 1)
  const waiting = ask('/2')
  ahead(600)
  const next = ask('/3')
  await until(() => held.length === 2)
  t.equal(upstream.requests[1]?.target, '/2')
  held[1]?.write(ok())
  await until(() => held.length === 3)
  for (const socket of [held[0], held[2]]) socket?.write(ok())
  t.match(await Promise.all([first, waiting, next]), [{ is: 'answered' }, { is: 'answered' }, { is: 'answered' }])
})

await test('a response without a length is over when its connection ends, and cut when it is reset', async (t) => {
  const { ask, forward, hold, held, upstream } = await clientOf(t)
  const head = 'HTTP/1.1 200 OK\r\n\r\npart'
  upstream.answer = (_, socket) => void socket.end(head)
  t.match(await ask('/1'), { is: 'answered' })
  hold()
  const cut = forward('/2')
  await until(() => held.length === 1)
  const [socket] = held
  await new Promise<void>((resolve) => void socket?.write(head, () => resolve()))
  await turn()
  socket?.resetAndDestroy()
  t.match(await cut, { is: 'cut', status: 200, cause: { message: 'the connection was reset' } })
  upstream.answer = (_, next) => void next.end(head)
  t.match(await ask('/3'), { is: 'answered' })
})

await test('error responses that do not end leave seven of eight connections to others, and those that end leave all', async (t) => {
  const { forward, upstream } = await clientOf(t, { connections: 16 })
  const unfinished: Socket[] = []
  upstream.answer = ({ target }, socket) => {
    if (target === '/whole') return void socket.write('HTTP/1.1 500 Oh\r\nContent-Length: 1\r\n\r\n.')
    if (target === '/good') return void socket.write(ok())
    unfinished.push(socket)
    return void socket.write('HTTP/1.1 500 Oh\r\nContent-Length: 1\r\n\r\n')
  }
  for (let times = 0; times < 40; times++) t.match(await forward('/unfinished'), { is: 'withheld', status: 500 })
  t.match(await forward('/good'), { is: 'answered' })
  await until(() => upstream.open.size === 3, 'the others were closed')
  for (const socket of unfinished) socket.write('.')
  await turn()
  for (let times = 0; times < 20; times++) t.match(await forward('/whole'), { is: 'withheld', status: 500 })
  t.match(await forward('/good'), { is: 'answered' })
  const used = new Set(upstream.requests.slice(-20).map(({ connection }) => connection))
  t.ok(used.size <= 3, 'their connections are used again')
})

await test('a client that closes gives its requests a grace, and then ends them', async (t) => {
  const { ask, rest, hold, held } = await clientOf(t)
  hold()
  const outcome = ask('/1')
  await until(() => held.length === 1)
  const grace = new HeldTimers(t, 'setTimeout', GRACE_MS)
  const [connection] = held
  const isGone = gone(connection)
  const closed = rest.close()
  await turn()
  t.equal(grace.size, 1)
  grace.run()
  await closed
  await isGone
  t.match(await outcome, { is: 'lost' })
})
