import { test } from 'tap'
import type { Session } from '../../src/sessions/index.ts'
import { CLOSE, POLICY_VIOLATION } from '../../src/sockets/close-codes.ts'
import { SocketEnd } from '../../src/sockets/socket-end.ts'
import { waitingOn } from '../support/feed/started-member.ts'
import { NOW, SESSION, socketAlone } from '../support/sockets/session-socket-alone.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { replace } from '../support/time/replace.ts'
import { until } from '../support/time/until.ts'

const OTHER = { id: 'other' } as Session
const PAUSE = { orders_paused: { closing: true } }

await test('a session socket sends the state of its session and its controls first, and watches without using it', async (t) => {
  const { world, open, events } = await socketAlone(t)
  world.controls = { first: PAUSE }
  open()
  t.same(await events(), [{ event: 'session', ...world.state, ...PAUSE }])
  t.same(world.log, [['watch', SESSION, false]])
})

await test('without controls, a session socket sends the state of the session alone, and ends all the same', async (t) => {
  const { world, open, events, closed } = await socketAlone(t, false)
  const socket = open()
  t.same(await events(), [{ event: 'session', ...world.state }])
  socket.end(CLOSE.restarting)
  t.equal(await closed, '1012 shutting_down')
})

await test('a change of the session, of the notice or of a pause that concerns the session is sent, and no other pause', async (t) => {
  const { world, open, events } = await socketAlone(t)
  open()
  await events()
  world.state = { ...world.state, expires_at: NOW + 2000 }
  world.controls = { other: PAUSE, nobody: { notice: 'Closing early' } }
  world.onPauses()
  world.onNotice()
  t.same(await events(), [{ event: 'notice', notice: 'Closing early' }])
  world.watcher?.onChange?.(OTHER)
  world.onPauses()
  t.same(await events(), [{ event: 'session', ...world.state, ...PAUSE }], 'the pause is known already')
  world.controls = {}
  world.onNotice()
  world.onPauses()
  t.same(await events(), [
    { event: 'notice', notice: null },
    { event: 'session', ...world.state },
  ])
})

await test('an end stops everything, and is told once', async (t) => {
  const held = new HeldTimers(t, 'setTimeout', 40_000)
  const { world, open, closed } = await socketAlone(t)
  const socket = open()
  t.equal(held.size, 1)
  world.log.length = 0
  socket.end(CLOSE.restarting)
  socket.end(CLOSE.storeDown)
  world.onNotice()
  t.equal(await closed, '1012 shutting_down')
  t.same(world.log, ['unwatched', 'no more notices', 'no more pauses', CLOSE.restarting])
  t.equal(held.size, 0)
})

await test('the end of the session is told with its reason, unless nobody knows it', async (t) => {
  for (const [reason, expected, close] of [
    ['logout', [{ event: 'ended', reason: 'logout' }], CLOSE.sessionExpired],
    ['storeLost', [], CLOSE.storeDown],
  ] as const) {
    const { world, open, client, events, closed } = await socketAlone(t)
    open()
    await events()
    const seen: unknown[] = []
    client.on('message', (data: Buffer) => seen.push(JSON.parse(data.toString())))
    world.watcher?.onEnd(reason)
    t.equal(await closed, `${close.code} ${close.reason}`)
    t.same(seen, expected)
    t.equal(world.log.at(-1), close)
  }
})

await test('a browser may send ten messages of 1024 bytes, and one more or a longer one ends the socket', async (t) => {
  for (const last of ['x', 'x'.repeat(1025)]) {
    const { open, client, events, closed, world } = await socketAlone(t)
    open()
    const before = last.length === 1 ? 10 : 9
    for (let count = 0; count < before; count++) client.send('x'.repeat(1024))
    await events()
    t.equal(client.readyState, client.OPEN)
    client.send(last)
    t.equal(await closed, '1008 ')
    t.same(world.log.at(-1), POLICY_VIOLATION)
  }
})

await test('the close of the browser ends the socket', async (t) => {
  const { open, client, world } = await socketAlone(t)
  open()
  client.close(4000, 'done')
  await until(() => world.log.length === 5)
  t.same(world.log.at(-1), { code: 4000, reason: 'done' })
})

await test('a browser that leaves more than 64 KiB unread is closed, also before it is told anything', async (t) => {
  const { world, wire, open, closed } = await socketAlone(t)
  const wait = waitingOn(wire, 65_536)
  open()
  wait(65_537)
  t.same(world.log, [['watch', SESSION, false]])
  world.onNotice()
  t.equal(world.log.at(-1), CLOSE.slowConsumer)
  wait(0)
  t.equal(await closed, '4408 slow_consumer')
  const full = await socketAlone(t)
  waitingOn(full.wire, 65_537)
  t.ok(full.open().waitingBytes > 65_537)
  t.same(full.world.log, [CLOSE.slowConsumer], 'nothing is watched')
})

await test('a session is warned 60 seconds before the nearer end, once it was read again', async (t) => {
  const held = new HeldTimers(t, 'setTimeout', 40_000)
  for (const [idle, absolute, why] of [
    [100, 1000, 'idle'],
    [1000, 100, 'absolute'],
    [100, 100, 'absolute'],
  ] as const) {
    const { world, open, events } = await socketAlone(t)
    world.state = { authenticated: true, now: NOW, expires_at: NOW + absolute, idle_expires_at: NOW + idle }
    const socket = open()
    await events()
    world.now += 40_000
    held.run()
    t.same(world.log.at(-1), ['reread', SESSION])
    t.same(await events(), [{ event: 'expiring', at: NOW + 100, why, now: NOW }])
    t.equal(held.size, 0)
    socket.end(CLOSE.restarting)
  }
})

await test('a warning whose end has moved on meanwhile waits for the new one', async (t) => {
  const held = new HeldTimers(t, 'setTimeout', 40_000)
  const { world, open, events } = await socketAlone(t)
  open()
  await events()
  world.now += 30_000
  world.state = { ...world.state, idle_expires_at: NOW + 130 }
  held.run()
  t.equal(held.size, 1)
  world.watcher?.onChange?.(SESSION)
  t.equal(held.size, 1, 'a change replaces the timer')
  t.notMatch(await events(), [{ event: 'expiring' }])
  t.notOk(world.log.some((entry) => Array.isArray(entry) && entry[0] === 'reread'))
})

await test('a warning is left out if the session is gone or was used meanwhile, and given if the store does not say', async (t) => {
  const held = new HeldTimers(t, 'setTimeout', 40_000)
  for (const [name, read, expected] of [
    ['gone', () => Promise.resolve({ is: 'none' }), []],
    ['away', () => Promise.reject(new Error('the store is away')), ['expiring']],
    ['used', (change: () => void) => Promise.resolve(change()), ['session']],
    ['over', (_: () => void, end: () => void) => Promise.resolve(end()), []],
  ] as const) {
    const { world, open, events, client } = await socketAlone(t)
    const socket = open()
    await events()
    world.now += 40_000
    const use = () => {
      world.state = { ...world.state, idle_expires_at: NOW + 500 }
      world.watcher?.onChange?.({ ...SESSION })
    }
    world.reread = () => read(use, () => socket.end(CLOSE.restarting))
    held.run()
    const seen = name === 'over' ? [] : ((await events()) as { event: string }[])
    t.same(
      seen.map(({ event }) => event),
      expected,
      name,
    )
    client.terminate()
    socket.end(CLOSE.restarting)
  }
})

await test('a warning that is far away is planned for as long as a timer can be, and one that is overdue at once', async (t) => {
  for (const [idle, ms] of [
    [3_000_000, 2_147_483_647],
    [60, 0],
    [10, 0],
  ] as const) {
    const held = new HeldTimers(t, 'setTimeout', ms)
    const { world, open } = await socketAlone(t)
    world.state = { ...world.state, expires_at: NOW + 5_000_000, idle_expires_at: NOW + idle }
    const socket = open()
    t.equal(held.size, 1, `${idle} s`)
    socket.end(CLOSE.restarting)
  }
})

await test('a session that is no longer authenticated counts as at its end', async (t) => {
  const held = new HeldTimers(t, 'setTimeout', 0)
  const { world, open, events } = await socketAlone(t)
  world.state = { authenticated: false, now: NOW }
  open()
  await events()
  held.run()
  t.same(await events(), [{ event: 'expiring', at: NOW, why: 'absolute', now: NOW }])
})

await test('a session socket that cannot be closed ends all the same', async (t) => {
  const { world, open } = await socketAlone(t)
  const socket = open()
  replace(t, SocketEnd.prototype, 'close', () => {
    throw new TypeError('planted')
  })
  t.throws(() => socket.end(CLOSE.sessionExpired), /planted/)
  t.equal(world.log.at(-1), CLOSE.sessionExpired)
})
