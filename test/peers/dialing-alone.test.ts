import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { connector, dial, dialing } from '../../src/peers/dialing.ts'
import { inTurn, noteSilence } from '../../src/peers/silent-addresses.ts'
import { lookupThreads } from '../support/peers/lookup-threads.ts'
import { stalledWay } from '../support/peers/stalled-way.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until, within } from '../support/time/until.ts'

type Failure = NodeJS.ErrnoException & { readonly errors?: readonly Error[] }
type Outcome = readonly [error: Failure | null, socket: Socket | null]

const OPTIONS = { noDelay: true, highWaterMark: 7000 }

const four = (...addresses: string[]) => addresses.map((address) => ({ address, family: 4 }))

/** A server at 127.0.0.1. At its port, other addresses of this machine refuse connections. */
async function listen(t: Test, port = 0) {
  // A test before these may have found it silent.
  noteSilence('127.0.0.1', false)
  const server = createServer((socket) => socket.on('error', () => undefined).resume())
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

/** The sockets that are made until the test ends. */
function socketsOf(t: Test) {
  const made: Socket[] = []
  const note = (message: unknown) => void made.push((message as { readonly socket: Socket }).socket)
  subscribe('net.client.socket', note)
  t.teardown(() => {
    unsubscribe('net.client.socket', note)
    for (const socket of made) socket.destroy()
  })
  return made
}

/** Begins a connection, and notes every outcome of it. */
function begin(host: string, port: number, timeoutMs = 60_000) {
  const outcomes: Outcome[] = []
  const end = dial('other', { host, port, timeoutMs, options: OPTIONS }, (...each) => outcomes.push(each))
  return { end, outcomes, outcome: () => until(() => outcomes.length > 0).then(() => outcomes[0] ?? [null, null]) }
}

await test('an address that refuses is followed by the next one at once, and one alone needs no name', async (t) => {
  const port = await listen(t)
  const sockets = socketsOf(t)
  const { addresses, begun } = lookupThreads(t, 8)
  addresses.set('next.test', four('127.0.0.8', '127.0.0.1', '127.0.0.9'))
  for (const [host, tried] of [
    ['next.test', 2],
    ['127.0.0.1', 1],
  ] as const) {
    const { outcomes, outcome } = begin(host, port)
    const [error, socket] = await outcome()
    t.equal(error, null)
    t.match(socket, { remoteAddress: '127.0.0.1', remotePort: port, readableHighWaterMark: 7000 })
    t.equal(sockets.splice(0).length, tried)
    socket?.destroy()
    await nextTurn()
    t.equal(outcomes.length, 1)
  }
  t.same(begun, ['next.test'])
})

await test('a connection that is refused everywhere fails with all reasons, or the only one', async (t) => {
  const port = await listen(t)
  const names = lookupThreads(t, 8)
  names.addresses
    .set('two.test', four('127.0.0.8', '127.0.0.9'))
    .set('one.test', four('127.0.0.8'))
    .set('none.test', [])
  const of = async (host: string) => (await begin(host, port).outcome())[0]
  const [two, one, none] = [await of('two.test'), await of('one.test'), await of('none.test')]
  const refused = (host: number) => ({ message: `connect ECONNREFUSED 127.0.0.${host}:${port}` })
  t.match(two, { code: 'ECONNREFUSED', errors: [refused(8), refused(9)] })
  t.match(one, { code: 'ECONNREFUSED', ...refused(8) })
  t.same(none?.errors, [])
  names.silent.add('unknown.test')
  const unknown = begin('unknown.test', port)
  await until(() => names.unanswered('unknown.test') === 1)
  names.answer('unknown.test', 'ENOTFOUND')
  t.match(await unknown.outcome(), [{ code: 'ENOTFOUND' }, null])
  t.equal(unknown.outcomes.length, 1)
})

await test('a silent address has its part of the time, comes last from then on, and is given up for another that answers', async (t) => {
  const way = await stalledWay(t, 9, '127.0.0.10')
  await way.stall()
  await listen(t, way.port)
  const sockets = socketsOf(t)
  const { addresses } = lookupThreads(t, 8)
  addresses.set('part.test', four('127.0.0.10', '127.0.0.9', '127.0.0.1'))
  const parts = new HeldTimers(t, 'setTimeout', 900)
  const limits = new HeldTimers(t, 'setTimeout', 3000)
  const { outcome, outcomes } = begin('part.test', way.port, 3000)
  await until(() => parts.size === 1, 'of three addresses, two have three fifths of the time')
  t.equal(sockets.length, 1)
  parts.run()
  t.match((await outcome())[1], { remoteAddress: '127.0.0.1' })
  t.same([sockets.length, sockets[0]?.destroyed, sockets[2]?.destroyed], [3, true, false])
  t.same([parts.size, limits.size, outcomes.length], [0, 0, 1])
  t.same(inTurn(four('127.0.0.10', '127.0.0.1')), four('127.0.0.1', '127.0.0.10'))
  t.match(
    [dialing('other', 1000), dialing('other', 10_000)],
    [
      { autoSelectFamily: true, autoSelectFamilyAttemptTimeout: 600 },
      { autoSelectFamily: true, autoSelectFamilyAttemptTimeout: 1250 },
    ],
  )
})

await test('what is not there in time says what was going on', async (t) => {
  const way = await stalledWay(t, 9, '127.0.0.11')
  await way.stall()
  const names = lookupThreads(t, 8)
  names.addresses.set('late.test', four('127.0.0.11'))
  names.addresses.set('later.test', four('127.0.0.9', '127.0.0.11'))
  names.silent.add('unresolved.test')
  const limits = new HeldTimers(t, 'setTimeout', 3000)
  const of = async (host: string, tried = 1) => {
    const sockets = socketsOf(t)
    const { outcome, outcomes } = begin(host, way.port, 3000)
    await until(() => sockets.length + names.unanswered(host) === tried)
    limits.run()
    const [error] = await outcome()
    t.same([outcomes.length, limits.size, sockets.every((each) => each.destroyed)], [1, 0, true])
    return error
  }
  t.match(await of('late.test'), {
    code: 'UND_ERR_CONNECT_TIMEOUT',
    message: `Connect Timeout Error (attempted address: late.test:${way.port}, timeout: 3000ms)`,
  })
  t.match(await of('later.test', 2), {
    code: 'UND_ERR_CONNECT_TIMEOUT',
    message: new RegExp(
      `^no connection after \\d+ ms: connect ETIMEDOUT 127.0.0.11:${way.port}, connect ECONNREFUSED 127.0.0.9:${way.port}$`,
    ),
  })
  t.match(await of('unresolved.test', 2), {
    code: 'EAI_AGAIN',
    syscall: 'getaddrinfo',
    hostname: 'unresolved.test',
    message: /^the name unresolved.test was not resolved after \d+ ms$/,
  })
})

await test('a connection that is ended has no outcome, whatever it was waiting for', async (t) => {
  const port = await listen(t)
  const sockets = socketsOf(t)
  const names = lookupThreads(t, 8)
  names.silent.add('ended.test')
  const limits = new HeldTimers(t, 'setTimeout', 3000)
  const named = begin('ended.test', port, 3000)
  await until(() => names.unanswered('ended.test') === 1)
  const other = begin('127.0.0.1', port, 3000)
  for (const { end } of [named, other]) end()
  names.answer('ended.test')
  await nextTurn()
  t.same([named.outcomes, other.outcomes, limits.size], [[], [], 0])
  t.same(
    sockets.map((each) => each.destroyed),
    [true],
  )
})

await test('the scheme of an address says which port is meant, and its host whose name it is', async (t) => {
  const asked: string[] = []
  const open = connector((host) => (asked.push(host), 'other'), { timeoutMs: 60_000 })
  for (const [protocol, port, tried] of [
    ['http:', '', 80],
    ['https:', '', 443],
    ['https:', '9', 9],
  ] as const) {
    const { promise, resolve } = Promise.withResolvers<Error | null>()
    open({ hostname: '127.0.0.12', protocol, port }, (...[error]) => resolve(error))
    t.match(await within(promise, 'an outcome'), { message: `connect ECONNREFUSED 127.0.0.12:${tried}` })
  }
  t.same(asked, ['127.0.0.12', '127.0.0.12', '127.0.0.12'])
})

await test('a plain connection shows that its address is not silent, and is reset when given up only where it is to be', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  for (const resets of [false, true]) {
    noteSilence('127.0.0.1', true)
    const accepted = once(server, 'connection') as Promise<[Socket]>
    const { promise, resolve } = Promise.withResolvers<Socket | null>()
    const open = connector('other', { timeoutMs: 60_000, resets })
    open({ hostname: '127.0.0.1', protocol: 'http:', port: String(port) }, (...[, socket]) => resolve(socket))
    const wire = await within(promise, 'a connection')
    t.same(inTurn(four('127.0.0.1', '127.0.0.13')), four('127.0.0.1', '127.0.0.13'))
    const [peer] = await accepted
    const codes: unknown[] = []
    peer.on('error', ({ code }: NodeJS.ErrnoException) => codes.push(code)).resume()
    wire?.on('error', () => undefined).destroy(new Error('given up'))
    await until(() => peer.destroyed)
    t.same(codes, resets ? ['ECONNRESET'] : [])
  }
})
