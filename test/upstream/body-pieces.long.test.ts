import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { test } from 'tap'
import { until } from '../support/time/until.ts'
import { startWorld, API } from '../support/world.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const REQUESTS = 8
/** Almost 64 KiB of a body, in pieces of one byte. */
const PIECES = '1\r\nx\r\n'.repeat(60_000)

function usedBytes(): number {
  collectGarbage()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

const BROWSER = ['POST /api/payment-agents/v1/transfer', 'GET /api/wallet/v1/wallets'] as const
for (const line of [...BROWSER, 'GET /api/v1/health'] as const) {
  await test(`${line}: a body in pieces of one byte takes hardly more memory than any other`, async (t) => {
    const { upstream, cookie, connection, server } = await startWorld(t, API)
    upstream.answer = () => undefined
    const accepted = new Set<Socket>()
    server.app.server.server.on('connection', (socket) => accepted.add(socket))
    // Health is for strangers too.
    const session = line.endsWith('health') ? '' : `Cookie: ${cookie}\r\n`
    const head = `${line} HTTP/1.1\r\nHost: h\r\nX-CSRF: 1\r\n${session}Transfer-Encoding: chunked\r\n\r\n`
    const sockets = await Promise.all(Array.from({ length: REQUESTS }, () => connection()))
    const before = usedBytes()
    for (const socket of sockets) socket.write(head + PIECES)
    const total = REQUESTS * (head.length + PIECES.length)
    const read = () => [...accepted].reduce((sum, { bytesRead }) => sum + bytesRead, 0)
    await until(() => read() === total, 'the server has read everything')
    const each = Math.round((usedBytes() - before) / REQUESTS)
    t.ok(each < 1_000_000, `${each} bytes`)
    for (const socket of [...sockets, ...upstream.open]) socket.destroy()
  })
}

await test('every byte of a body arrives, whatever the size of its pieces', async (t) => {
  const { upstream, call } = await startWorld(t, API)
  const longest = Array.from({ length: 90_000 }, (_each, index) => String.fromCharCode(33 + (index % 90))).join('')
  for (const size of [9, 1000, 65_536, 65_537]) {
    for (const bytes of [5, 65_536, 90_000]) {
      for (const headers of [{}, { 'idempotency-key': `${size} ${bytes}` }]) {
        upstream.reset()
        const body = longest.slice(0, bytes)
        const pieces = body.match(new RegExp(`.{1,${size}}`, 'g')) ?? []
        const { status } = await call('POST', '/api/payment-agents/v1/transfer', {
          headers,
          body: Readable.from(pieces),
        })
        t.equal(status, 200)
        t.ok(upstream.requests[0]?.body === body, `${bytes} bytes in pieces of ${size}`)
      }
    }
  }
})
