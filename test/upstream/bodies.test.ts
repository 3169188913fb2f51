import type { Socket } from 'node:net'
import { PassThrough, Readable } from 'node:stream'
import { test } from 'tap'
import { gone, ok } from '../support/upstream/raw-upstream.ts'
import { readAll, startWorld, type World, API } from '../support/world.ts'
import { ACCOUNTS } from '../support/user.ts'
import { nextEvent, within } from '../support/time/until.ts'
const LIMIT = 100_000
/** More than the server buffers before it sends a body on. */
const LARGE = 'x'.repeat(70_000)
const get = (cookie: string) => `GET ${ACCOUNTS} HTTP/1.1\r\nHost: h\r\nCookie: ${cookie}\r\nX-CSRF: 1\r\n\r\n`

await test('a body up to MAX_BODY_BYTES passes, and a longer one gets 413 and does not reach upstream', async (t) => {
  const { call, upstream } = await startWorld(t, { ...API, settings: { MAX_BODY_BYTES: String(LIMIT) } })
  const chunked = { 'transfer-encoding': 'chunked' }
  for (const [name, body, headers] of [
    ['a length', Buffer.alloc(LIMIT, 'a'), {}],
    ['chunks', Buffer.alloc(LIMIT, 'b'), chunked],
    ['many chunks', Readable.from(Array.from({ length: 100 }, () => Buffer.alloc(LIMIT / 100, 'c'))), chunked],
    ['nothing', '', {}],
    ['no chunk', Readable.from([]), chunked],
  ] as const) {
    upstream.reset()
    t.equal((await call('POST', ACCOUNTS, { body, headers })).status, 200, name)
    const length = name === 'nothing' || name === 'no chunk' ? 0 : LIMIT
    t.equal(upstream.requests[0]?.body.length, length, name)
  }
  for (const [name, body, headers] of [
    ['a length', Buffer.alloc(LIMIT + 1), {}],
    ['chunks', Buffer.alloc(LIMIT + 1), chunked],
    ['many megabytes', Buffer.alloc(8 * 1024 * 1024), chunked],
    ['many chunks', Readable.from(Array.from({ length: 101 }, () => Buffer.alloc(LIMIT / 100))), chunked],
  ] as const) {
    upstream.reset()
    const response = await call('POST', ACCOUNTS, { body, headers })
    t.equal(response.status, 413, name)
    t.equal(response.json['code'], 'body_too_large')
    t.same(upstream.requests, [], `${name}: no whole request arrived`)
  }
  t.equal((await call('POST', ACCOUNTS, { body: '{}' })).status, 200, 'the next call is served')
})

await test('a connection serves the next request after a 413', async (t) => {
  const { connection, upstream, cookie } = await startWorld(t, { ...API, settings: { MAX_BODY_BYTES: '10' } })
  const socket = await connection()
  const head = `POST ${ACCOUNTS} HTTP/1.1\r\nHost: h\r\nCookie: ${cookie}\r\nX-CSRF: 1\r\n`
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
  socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n14\r\n${'a'.repeat(20)}\r\n`)
  while (!text.includes('body_too_large')) await nextEvent(socket, 'data')
  socket.write(`5\r\nhello\r\n0\r\n\r\n${head}Content-Length: 2\r\n\r\n{}`)
  while (!text.includes('200 OK')) await nextEvent(socket, 'data')
  t.equal(upstream.requests.length, 1)
  t.equal(upstream.requests[0]?.body, '{}')
})

await test('a client that sends too much and closes its end can still read the 413', async (t) => {
  const { connection, cookie } = await startWorld(t, { ...API, settings: { MAX_BODY_BYTES: '10' } })
  const head = `POST ${ACCOUNTS} HTTP/1.1\r\nHost: h\r\nCookie: ${cookie}\r\nX-CSRF: 1\r\nConnection: close\r\n`
  const body = Buffer.alloc(8 * 1024 * 1024)
  const socket = await connection()
  socket.pause()
  socket.write(`${head}Content-Length: ${body.length}\r\n\r\n`)
  const error = await new Promise((resolve) => void socket.write(body, resolve))
  t.notOk(error, 'the server read the whole body')
  socket.resume()
  t.match(await readAll(socket), /^HTTP\/1\.1 413 .*body_too_large/s)
})

await test('request and response bodies are streamed', async (t) => {
  const { call, connection, upstream, cookie } = await startWorld(t, API)
  await t.test('the first byte of a large request body arrives upstream before the last is sent', async (t) => {
    for (const framing of ['chunked', 'length']) {
      const body = new PassThrough()
      const headers: Record<string, string> =
        framing === 'length' ? { 'content-length': String(LARGE.length + 5) } : { 'transfer-encoding': 'chunked' }
      const head = new Promise<void>((resolve) => {
        upstream.onHead = () => resolve()
      })
      const response = call('POST', ACCOUNTS, { body, headers })
      body.write(LARGE)
      await within(head, 'the head of the response')
      upstream.reset()
      body.end('world')
      t.equal((await response).status, 200, framing)
      t.equal(upstream.requests[0]?.body, `${LARGE}world`)
    }
  })
  await t.test('the first byte of a response body arrives at the browser before the last is sent', async (t) => {
    let rest = (): void => void t.fail('too early')
    upstream.answer = (_request, socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello')
      rest = () => void socket.write('world')
    }
    const socket = await connection()
    socket.write(get(cookie))
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
    while (!text.includes('hello')) await nextEvent(socket, 'data')
    rest()
    while (!text.includes('world')) await nextEvent(socket, 'data')
    t.match(text, /content-length: 10/i)
  })
})

/** Writes without end, and counts the bytes that the peer takes. */
function pour(socket: Socket): { taken: () => number } {
  const block = Buffer.alloc(65_536)
  let taken = 0
  const more = (): void => {
    if (socket.destroyed) return
    socket.write(block, () => {
      taken += block.length
      more()
    })
  }
  more()
  return { taken: () => taken }
}

/** Resolves once a count no longer changes. */
async function standstill(count: () => number): Promise<number> {
  for (let last = -1; ;) {
    const now = count()
    if (now === last && now > 0) return now
    last = now
    await new Promise((resolve) => void setTimeout(resolve, 150))
  }
}

await test('a browser that does not read makes upstream wait, and is cut off in the end', async (t) => {
  const { connection, upstream, cookie } = await startWorld(t, { ...API, settings: { UPSTREAM_BODY_SECONDS: '2' } })
  let poured = { taken: () => 0 }
  upstream.answer = (_request, socket) => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n')
    poured = pour(socket)
  }
  const socket = await connection()
  socket.pause()
  socket.write(get(cookie))
  await upstream.next()
  const [paused] = upstream.open
  const bytes = await standstill(() => poured.taken())
  t.ok(bytes < 32 * 1024 * 1024, `${bytes} bytes, most of them in the sockets`)
  await gone(paused)
  t.pass('the connection to upstream ends although the browser does not read')
})

await test('an upstream that does not read makes the browser wait', async (t) => {
  const { connection, upstream, cookie } = await startWorld(t, {
    ...API,
    settings: { MAX_BODY_BYTES: '1000000000', UPSTREAM_HEADERS_SECONDS: '2' },
  })
  upstream.onHead = (_head, socket) => void socket.pause()
  const socket = await connection()
  const head = `POST ${ACCOUNTS} HTTP/1.1\r\nHost: h\r\nCookie: ${cookie}\r\nX-CSRF: 1\r\n`
  socket.write(`${head}Content-Length: 999999999\r\n\r\n`)
  const bytes = await standstill(pour(socket).taken)
  t.ok(bytes < 32 * 1024 * 1024, `${bytes} bytes, most of them in the sockets`)
})

/** Sends a request that upstream does not answer, and leaves once it has arrived upstream. */
async function leave({ connection, upstream }: World<'raw'>, text: string, answered = false): Promise<Socket> {
  const arrived = new Promise<Socket>((resolve) => {
    upstream.answer = (_request, upstreamSocket) => {
      if (answered) upstreamSocket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello')
      resolve(upstreamSocket)
    }
  })
  const socket = await connection()
  socket.write(text)
  const upstreamSocket = await within(arrived, 'the request arrives upstream')
  if (answered) await nextEvent(socket, 'data')
  socket.destroy()
  return upstreamSocket
}

await test('when the browser leaves, a GET is aborted upstream, and an order that was sent whole finishes', async (t) => {
  const api = await startWorld(t, API)
  const { upstream, server, cookie, connection } = api
  const head = `POST ${ACCOUNTS} HTTP/1.1\r\nHost: h\r\nCookie: ${cookie}\r\nX-CSRF: 1\r\n`
  const logged = async (count: number): Promise<Record<string, unknown>> => {
    for (;;) {
      const lines = server.log.filter(({ audit }) => audit === 'browser_left')
      const line = lines.at(-1)
      if (lines.length === count && line !== undefined) return line
      await new Promise((resolve) => void setTimeout(resolve, 5))
    }
  }

  for (const answered of [false, true]) {
    const socket = await leave(api, get(cookie), answered)
    await gone(socket)
    t.pass(`a GET is aborted upstream, ${answered ? 'in the middle of' : 'before'} its answer`)
  }

  const posted = await leave(api, `${head}Content-Length: 2\r\n\r\n{}`)
  // A round trip of another request, after which the first has been handled.
  upstream.answer = (_request, socket) => void socket.write(ok())
  await api.call('GET', ACCOUNTS)
  t.equal(posted.destroyed, false, 'an order that was sent whole finishes')
  posted.write('HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}')
  const session = /[\w-]{10}/
  t.match(await logged(1), { method: 'POST', status: 201, sent: 'whole', session })

  const lost = await leave(api, `${head}Content-Length: 2\r\n\r\n{}`)
  lost.resetAndDestroy()
  t.match(await logged(2), { status: 0, sent: 'whole', cause: { code: 'ECONNRESET' } })

  const half = await connection()
  const begun = new Promise<Socket>((resolve) => {
    upstream.onHead = (_head, socket) => resolve(socket)
  })
  half.write(`${head}Content-Length: 80000\r\n\r\n${LARGE}`)
  const upstreamSocket = await within(begun, 'the response begins')
  half.destroy()
  await gone(upstreamSocket)
  t.match(await logged(3), { status: 0, sent: 'part' }, 'half an order does not finish')

  upstream.reset()
  await t.test('each of several pipelined requests is aborted', async (t) => {
    const arrived: Socket[] = []
    const all = new Promise<void>((resolve) => {
      upstream.answer = (_request, socket) => {
        if (arrived.push(socket) === 3) resolve()
      }
    })
    const socket = await connection()
    socket.write(get(cookie).repeat(3))
    await within(all, 'the whole response')
    socket.destroy()
    await Promise.all(arrived.map(gone))
    t.equal(arrived.length, 3)
  })
})

await test('a fault of upstream during an upload gets a problem response', async (t) => {
  const { call, upstream } = await startWorld(t, API)
  for (const framing of ['chunked', 'length']) {
    const body = new PassThrough()
    upstream.onHead = (_head, socket) => socket.resetAndDestroy()
    const headers: Record<string, string> =
      framing === 'length' ? { 'content-length': '80000' } : { 'transfer-encoding': 'chunked' }
    const response = call('POST', ACCOUNTS, { body, headers })
    body.write(LARGE)
    const { status, json } = await response
    t.equal(status, 502, framing)
    t.match(json, { code: 'upstream_lost', outcome: 'unknown' })
    body.end('world')
  }
  await t.test('an early response of upstream reaches the browser', async (t) => {
    const body = new PassThrough()
    upstream.onHead = (_head, socket) => void socket.write('HTTP/1.1 415 No\r\nContent-Length: 2\r\n\r\n{}')
    const response = call('POST', ACCOUNTS, { body, headers: { 'content-length': '80000' } })
    body.write(LARGE)
    t.equal((await response).status, 415)
    body.end('world')
  })
})
