import { EventEmitter, once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { test, type Test } from 'tap'
import { connector, noteSlowTls } from '../../src/peers/dialing.ts'
import { noteSilence } from '../../src/peers/silent-addresses.ts'
import { CLOSE } from '../../src/sockets/close-codes.ts'
import { openUpstreamSocket } from '../../src/sockets/upstream-socket.ts'
import { lookupThreads } from '../support/peers/lookup-threads.ts'
import { testCa, trust } from '../support/redis/tls.ts'
import { clockAhead } from '../support/time/clock-ahead.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until, within } from '../support/time/until.ts'

const OPEN_MS = 10_000
/** After so long an address that was accepted counts as silent, although its connection goes on. */
const SILENT_MS = 1250

/** A name with two addresses: the first accepts connections, and says nothing or closes them; the second speaks TLS. */
async function halfSilent(t: Test, host: string, first: string, isClosing = false) {
  const ca = await testCa(t)
  await trust(t, ca)
  const pem = await readFile(ca.pemFile)
  const secure = createTlsServer({ cert: pem, key: pem }).listen(0, '127.0.0.1')
  await once(secure, 'listening')
  const { port } = secure.address() as AddressInfo
  let accepted = 0
  const silent = createServer((socket) => {
    accepted++
    if (isClosing) return void socket.once('data', () => socket.resetAndDestroy())
    socket.on('error', () => undefined).resume()
    t.teardown(() => socket.destroy())
  }).listen(port, first)
  await once(silent, 'listening')
  t.teardown(() => (secure.close(), silent.close()))
  lookupThreads(t, 8).addresses.set(
    host,
    [first, '127.0.0.1'].map((address) => ({ address, family: 4 })),
  )
  const open = connector('api', { timeoutMs: 300 })
  /** Opens a connection to a name, and tells its error, if there is one. */
  const codeOf = (hostname = host): Promise<unknown> =>
    new Promise((resolve) => {
      const options = { hostname, servername: 'localhost', host: hostname, port: String(port), protocol: 'https:' }
      open(options, (error: NodeJS.ErrnoException | null, socket: Socket | null) => {
        socket?.destroy()
        resolve(error?.code)
      })
    })
  return { port, accepted: () => accepted, codeOf }
}

const SILENT = 'UND_ERR_CONNECT_TIMEOUT'

for (const isClosing of [false, true]) {
  await test(`An address that accepts connections and ${isClosing ? 'closes them' : 'is silent in TLS'} comes last from then on`, async (t) => {
    const hostname = `api-${isClosing}.tls.test`
    const { accepted, codeOf } = await halfSilent(t, hostname, isClosing ? '127.0.0.6' : '127.0.0.4', isClosing)
    t.equal(await codeOf(), isClosing ? 'ECONNRESET' : SILENT)
    t.equal(await codeOf(), undefined)
    t.equal(accepted(), 1)
  })
}

await test('While TLS with an address takes long, other connections go elsewhere', async (t) => {
  const host = 'api-slow.tls.test'
  const { port, accepted, codeOf } = await halfSilent(t, host, '127.0.0.9')
  const silence = new HeldTimers(t, 'setTimeout', SILENT_MS)
  const limits = new HeldTimers(t, 'setTimeout', OPEN_MS)
  const open = (): ReturnType<typeof openUpstreamSocket> =>
    openUpstreamSocket(`wss://${host}:${port}/`, 1000, new AbortController().signal)
  const sockets = [open()]
  await until(() => accepted() === 1)
  silence.run()
  await turn()
  await turn()
  sockets.push(open())
  t.match(await within(sockets[1] ?? open(), 'the second address answers'), { why: 'ERR_TLS_CERT_ALTNAME_INVALID' })
  for (const address of ['127.0.0.1', '127.0.0.9']) noteSilence(address, false)
  const first = codeOf()
  await until(() => accepted() === 2)
  silence.run()
  await turn()
  await turn()
  t.equal(await codeOf(), undefined)
  t.equal(await first, SILENT)
  t.equal(accepted(), 2)
  limits.run()
  t.match(await sockets[0], { is: 'refused' })
  t.equal(silence.size, 0)
})

await test('Of a connection that lasts, nothing is kept that waited for TLS', (t) => {
  const silence = new HeldTimers(t, 'setTimeout', SILENT_MS)
  for (const event of ['secureConnect', 'close']) {
    const socket = new EventEmitter()
    noteSlowTls(socket as TLSSocket, '127.0.0.10')
    t.equal(silence.size, 1)
    socket.emit(event)
    t.same([silence.size, socket.eventNames()], [0, []], event)
  }
  t.end()
})

await test('It does not come first again because it has accepted another connection', async (t) => {
  const { accepted, codeOf } = await halfSilent(t, 'api-again.tls.test', '127.0.0.7')
  t.equal(await codeOf(), SILENT)
  const other = codeOf('127.0.0.7')
  await until(() => accepted() === 2)
  t.equal(await codeOf(), undefined)
  t.equal(await other, SILENT)
})

await test('After a minute one connection finds out whether it still is, and all others go elsewhere', async (t) => {
  const { accepted, codeOf } = await halfSilent(t, 'api-later.tls.test', '127.0.0.8')
  const ahead = clockAhead(t)
  for (let trials = 1; trials <= 3; trials++) {
    t.same(await Promise.all([codeOf(), trials > 1 && codeOf(), trials > 1 && codeOf()]), [
      SILENT,
      ...(trials > 1 ? [undefined, undefined] : [false, false]),
    ])
    t.equal(accepted(), trials)
    ahead(60_000)
  }
})

await test('So does one that is silent when a socket is opened', async (t) => {
  const host = 'sockets.tls.test'
  const { port, accepted } = await halfSilent(t, host, '127.0.0.5')
  const limits = new HeldTimers(t, 'setTimeout', OPEN_MS)
  const open = () => openUpstreamSocket(`wss://${host}:${port}/`, 1000, new AbortController().signal)
  const first = open()
  await until(() => accepted() === 1)
  limits.run()
  t.match(await first, { is: 'refused', close: CLOSE.upstreamTimeout, why: 'timeout' })
  t.match(await within(open(), 'the second address answers'), {
    why: 'ERR_TLS_CERT_ALTNAME_INVALID',
  })
  t.equal(accepted(), 1)
})
