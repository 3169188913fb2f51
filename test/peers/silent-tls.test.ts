import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { test, type Test } from 'tap'
import { connector } from '../../src/peers/dialing.ts'
import { CLOSE } from '../../src/sockets/close-codes.ts'
import { openUpstreamSocket } from '../../src/sockets/upstream-socket.ts'
import { lookupThreads } from '../support/peers/lookup-threads.ts'
import { testCa, trust } from '../support/redis/tls.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until, within } from '../support/time/until.ts'

const OPEN_MS = 10_000

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
  return { port, accepted: () => accepted }
}

for (const isClosing of [false, true]) {
  await test(`An address that accepts connections and ${isClosing ? 'closes them' : 'is silent in TLS'} comes last from then on`, async (t) => {
    const hostname = `api-${isClosing}.tls.test`
    const { port, accepted } = await halfSilent(t, hostname, isClosing ? '127.0.0.6' : '127.0.0.4', isClosing)
    const open = connector('api', { timeoutMs: 300 })
    const codeOf = (): Promise<unknown> =>
      new Promise((resolve) => {
        const options = { hostname, servername: 'localhost', host: hostname, port: String(port), protocol: 'https:' }
        open(options, (error: NodeJS.ErrnoException | null, socket: Socket | null) => {
          socket?.destroy()
          resolve(error?.code)
        })
      })
    t.equal(await codeOf(), isClosing ? 'ECONNRESET' : 'UND_ERR_CONNECT_TIMEOUT')
    t.equal(await codeOf(), undefined)
    t.equal(accepted(), 1)
  })
}

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
