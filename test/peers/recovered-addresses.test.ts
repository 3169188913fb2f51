import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { test } from 'tap'
import { WebSocketServer } from 'ws'
import { connector, dialing } from '../../src/peers/dialing.ts'
import { noteSilence } from '../../src/peers/silent-addresses.ts'
import { openUpstreamSocket } from '../../src/sockets/upstream-socket.ts'
import { lookupThreads } from '../support/peers/lookup-threads.ts'
import { testCa, trust } from '../support/redis/tls.ts'
import { clockAhead } from '../support/time/clock-ahead.ts'

const ADDRESSES = ['127.0.0.11', '127.0.0.12'].map((address) => ({ address, family: 4 }))
const HOST = 'recovered.test'

/** Opens a connection as the REST client does, and tells where it leads. */
function connected(protocol: string, port: number): Promise<Socket> {
  const options = { hostname: HOST, servername: 'localhost', host: HOST, port: String(port), protocol }
  return new Promise((resolve, reject) => {
    connector('api', { timeoutMs: 5000 })(options, (error, socket) => (socket ? resolve(socket) : reject(error)))
  })
}

/** Opens a connection of each kind. */
const WAYS: Record<string, (port: number) => Promise<Socket>> = {
  'http:': (port) => connected('http:', port),
  'https:': (port) => connected('https:', port),
  'ws:': async (port) => {
    const opened = await openUpstreamSocket(`ws://${HOST}:${port}/`, 1000, new AbortController().signal)
    if (opened.is !== 'open') throw new Error(opened.why)
    return opened.connection.wire
  },
  'redis:': async (port) => {
    const socket = connect({ host: HOST, port, ...dialing('redis', 5000) })
    await once(socket, 'connect')
    return socket
  },
}

for (const [way, open] of Object.entries(WAYS)) {
  await test(`An address that was silent comes first again once a connection over ${way} has found that it is not`, async (t) => {
    const ca = await testCa(t)
    await trust(t, ca)
    const pem = await readFile(ca.pemFile)
    const server: Server = way === 'https:' ? createTlsServer({ cert: pem, key: pem }) : createServer()
    const sockets = new WebSocketServer({ server })
    await once(server.listen(0, '0.0.0.0'), 'listening')
    t.teardown(() => (sockets.close(), server.close()))
    lookupThreads(t, 8).addresses.set(HOST, ADDRESSES)
    const [first, second] = ADDRESSES
    const ahead = clockAhead(t)
    noteSilence(first?.address, true)
    for (const [passedMs, expected] of [
      [0, second],
      [60_000, first],
      [0, first],
    ] as const) {
      ahead(passedMs)
      const socket = await open((server.address() as AddressInfo).port)
      t.equal(socket.remoteAddress, expected?.address)
      socket.destroy()
    }
    noteSilence(first?.address, false)
  })
}
