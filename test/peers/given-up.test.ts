import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { test, type Test } from 'tap'
import { Client } from 'undici'
import { connector } from '../../src/peers/dialing.ts'
import { testCa } from '../support/redis/tls.ts'
import { until } from '../support/time/until.ts'
import { gone, ok } from '../support/upstream/raw-upstream.ts'

/** More than a peer that does not read has room for, and less than the kernel holds for it. */
const BODY = Buffer.alloc(1_048_576)

/** A client of a peer that reads nothing of its own accord. `codes` are the errors of the peer's connections. */
async function unreadPeer(t: Test, scheme: string) {
  const { caFile, pemFile } = await testCa(t)
  const pem = await readFile(pemFile)
  const sockets: Socket[] = []
  const codes: unknown[] = []
  const accept = (socket: Socket): void => {
    sockets.push(socket)
    socket.on('error', ({ code }: NodeJS.ErrnoException) => codes.push(code))
  }
  const server = scheme === 'https' ? createTlsServer({ cert: pem, key: pem }, accept) : createServer(accept)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const connect = connector('api', { timeoutMs: 5000, tls: { ca: await readFile(caFile) }, resets: true })
  const client = new Client(`${scheme}://127.0.0.1:${port}`, { connect, headersTimeout: 1000, keepAliveTimeout: 50 })
  t.teardown(async () => {
    await client.destroy()
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { client, sockets, codes }
}

for (const scheme of ['http', 'https']) {
  for (const why of ['is aborted', 'takes too long']) {
    await test(`what the kernel holds of a request over ${scheme} that ${why} does not reach the peer later`, async (t) => {
      const { client, sockets, codes } = await unreadPeer(t, scheme)
      const over = new AbortController()
      const isSent = new Promise<void>((resolve) => void client.on('connect', () => resolve()))
      const request = client.request({ path: '/', method: 'POST', body: BODY, signal: over.signal })
      const failed = t.rejects(request, { name: why === 'is aborted' ? 'AbortError' : 'HeadersTimeoutError' })
      await isSent
      if (why === 'is aborted') setTimeout(() => over.abort(), 100)
      await failed
      await until(() => sockets.length === 1, 'the peer has accepted')
      const [socket] = sockets
      socket?.resume()
      await gone(socket)
      t.same(codes, ['ECONNRESET'])
      t.ok((socket?.bytesRead ?? 0) < BODY.length, `${socket?.bytesRead} bytes have arrived`)
    })
  }

  await test(`a connection over ${scheme} that is no longer used ends in order`, async (t) => {
    const { client, sockets, codes } = await unreadPeer(t, scheme)
    const responded = client.request({ path: '/', method: 'GET' })
    await until(() => sockets.length === 1, 'the peer has accepted')
    const [socket] = sockets
    socket?.resume().write(ok())
    await (await responded).body.text()
    await gone(socket)
    t.same(codes, [])
  })
}
