import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { test, type Test } from 'tap'
import { WebSocketServer } from 'ws'
import { listen } from '../../sandbox/listening.ts'
import { UPSTREAM } from '../../src/sockets/close-codes.ts'
import { isLastOfRead, SocketEnd } from '../../src/sockets/socket-end.ts'
import { openUpstreamSocket } from '../../src/sockets/upstream-socket.ts'
import { wholeFrame } from '../../src/sockets/whole-frame.ts'
import { lookupThreads } from '../support/peers/lookup-threads.ts'
import { silentServer } from '../support/peers/silent-server.ts'
import { testCa, trust } from '../support/redis/tls.ts'
import { frame } from '../support/sockets/raw-frames.ts'
import { gone } from '../support/upstream/raw-upstream.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until, within } from '../support/time/until.ts'

/** A socket must be open after this time. */
const OPEN_MS = 10_000

/** Sockets of an upstream that speaks TLS, with a certificate for `localhost` and its address alone. */
async function secureUpstream(t: Test) {
  const ca = await testCa(t)
  await trust(t, ca)
  const pem = await readFile(ca.pemFile)
  const server = createServer({ cert: pem, key: pem })
  const servernames: unknown[] = []
  const wires: Socket[] = []
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket, { socket: wire }) => {
    servernames.push((wire as TLSSocket).servername)
    wires.push(wire)
    socket.on('error', () => undefined).send('hello')
  })
  const port = await listen(server, 0, '127.0.0.1')
  t.teardown(() => {
    for (const client of sockets.clients) client.terminate()
    server.close()
  })
  return { port, servernames, wires }
}

await test('a socket to upstream over TLS names the host and verifies its certificate, also by the second of its addresses, and what comes at once is read', async (t) => {
  const { port, servernames } = await secureUpstream(t)
  const open = (host: string) => openUpstreamSocket(`wss://${host}:${port}/`, 1000, new AbortController().signal)
  for (const host of ['localhost', '127.0.0.1']) {
    const outcome = await open(host)
    if (outcome.is !== 'open') throw new Error(`${host}: ${outcome.why}`)
    const { socket, wire } = outcome.connection
    const greeting = new Promise((resolve) => void socket.once('message', (data: Buffer) => resolve(data.toString())))
    socket.resume()
    t.equal(await within(greeting, 'a greeting'), 'hello')
    t.equal((wire as TLSSocket).authorized, true, host)
    socket.terminate()
  }
  t.same(servernames, ['localhost', false])
  // Nothing listens at the first address, and the certificate has another name.
  const addresses = ['127.0.0.2', '127.0.0.1'].map((address) => ({ address, family: 4 }))
  lookupThreads(t, 8).addresses.set('upstream.tls.test', addresses)
  const refused = { is: 'refused', why: 'ERR_TLS_CERT_ALTNAME_INVALID', close: { code: 1013 } }
  t.match(await open('upstream.tls.test'), refused)
})

await test('a socket over TLS that is cut sends nothing more, not even what the kernel holds', async (t) => {
  const { port, wires } = await secureUpstream(t)
  const outcome = await openUpstreamSocket(`wss://localhost:${port}/`, 1000, new AbortController().signal)
  if (outcome.is !== 'open') throw new Error(outcome.why)
  const { wire } = outcome.connection
  await until(() => wires.length === 1)
  const [peer] = wires
  peer?.pause()
  const end = new SocketEnd(outcome.connection, UPSTREAM, { message: () => undefined, ended: () => undefined })
  const given = (): number => wire.bytesWritten - wire.writableLength
  await until(() => {
    end.send(Buffer.alloc(50_000), true, 0)
    return given() > 1_000_000 && wire.writableLength > 200_000
  }, 'upstream takes no more')
  const before = given()
  end.cut()
  await gone(wire)
  peer?.on('error', () => undefined).resume()
  await gone(peer)
  t.ok((peer?.bytesRead ?? Infinity) < before, `${peer?.bytesRead} of ${before} bytes have arrived`)
  end.close()
})

await test('a socket to upstream that is accepted and then left without an answer is given up, with TLS and without', async (t) => {
  const limits = new HeldTimers(t, 'setTimeout', OPEN_MS)
  const { server, port } = await silentServer(t)
  for (const scheme of ['ws', 'wss']) {
    const accepted = once(server, 'connection') as Promise<[Socket]>
    const opening = openUpstreamSocket(`${scheme}://127.0.0.1:${port}/`, 1000, new AbortController().signal)
    const [wire] = await within(accepted, 'a connection')
    const closed = once(wire, 'close')
    await until(() => limits.size === 1, 'the connection alone is in time')
    limits.run()
    const timeout = { is: 'refused', why: 'timeout', close: { code: 1013, reason: 'upstream_timeout' } }
    t.match(await within(opening, 'an outcome'), timeout, scheme)
    await within(closed, 'the connection is closed')
  }
})

await test('a message that came alone over TLS keeps nothing else alive, is known to be alone, and can be sent on as it came', async (t) => {
  const { port, wires } = await secureUpstream(t)
  const url = `wss://localhost:${port}/`
  const opened = await Promise.all([1, 2].map(() => openUpstreamSocket(url, 100_000, new AbortController().signal)))
  const messages: Buffer[] = []
  for (const outcome of opened) {
    if (outcome.is !== 'open') throw new Error(outcome.why)
    const { socket } = outcome.connection
    t.teardown(() => socket.terminate())
    socket.on('message', (data: Buffer) => messages.push(data))
    socket.resume()
  }
  await until(() => messages.length === 2)
  for (let count = 3; count <= 10; count++) {
    const payload = 'x'.repeat(100 * count)
    wires[count % 2]?.write(frame({ opcode: 1, payload, masked: false }))
    await until(() => messages.length === count)
    const message = messages.at(-1) ?? Buffer.alloc(0)
    t.equal(message.toString(), payload)
    t.ok(message.buffer.byteLength < payload.length + 10, `it keeps ${message.buffer.byteLength} bytes`)
    t.ok(isLastOfRead(message))
    t.ok(wholeFrame(message, false))
  }
})
