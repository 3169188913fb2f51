import fs, { mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { test, type Test } from 'tap'
import { ALONE } from '../support/server/settings.ts'
import { testServer } from '../support/server/test-server.ts'
import { nextEvent } from '../support/time/until.ts'
import { sendTo } from '../support/user.ts'
import { readAll } from '../support/world.ts'

/** A connection to a server with a file, on which the file has been asked for. */
async function asking(t: Test, content: string, headers = '', version = '1.1') {
  const dir = t.testdir({ 'app.js': content })
  const { port } = await testServer(t, { ...ALONE, STATIC_DIR: dir })
  const socket = connect(port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  socket.write(`GET /app.js HTTP/${version}\r\nHost: h\r\n${headers}\r\n`)
  return { socket, path: `${dir}/app.js` }
}

/** More than the kernel takes for a reader that waits. */
const LONG = 'a'.repeat(32 * 1_048_576)

for (const [what, headers] of [
  ['as it is', ''],
  ['compressed', 'Accept-Encoding: gzip\r\n'],
] as const) {
  await test(`a file that becomes shorter while it is sent ${what} breaks its response off, and no other follows`, async (t) => {
    // What cannot be compressed, so that it does not fit into the connection.
    const content = headers === '' ? LONG : Array.from({ length: 2 ** 21 }, () => Math.random()).join('\n')
    const { socket, path } = await asking(t, content, headers)
    const [first] = (await nextEvent(socket, 'data')) as [Buffer]
    t.match(first.toString('latin1'), /^HTTP\/1\.1 200 /)
    socket.pause()
    truncateSync(path, 1)
    // It would be taken for the rest of the file.
    socket.write('GET /livez HTTP/1.1\r\nHost: h\r\n\r\n')
    socket.resume()
    const rest = await readAll(socket)
    t.notMatch(rest.slice(-1000), 'HTTP/1.1')
    t.notMatch(rest.slice(-5), '0\r\n\r\n', 'it does not look whole')
  })
}

await test('of a file that was empty, and is no longer when it is read, nothing is sent behind the response', async (t) => {
  const { createReadStream } = fs
  t.intercept(fs, 'createReadStream', {
    value: (...given: Parameters<typeof createReadStream>) => {
      writeFileSync(given[0], 'new')
      return createReadStream(...given)
    },
  })
  const { socket } = await asking(t, '', 'Connection: close\r\n')
  t.match(await readAll(socket), /^HTTP\/1\.1 200 [^]*content-length: 0\r\n[^]*\r\n\r\n$/)
})

await test('a file and a part of it arrive whole', async (t) => {
  const { socket } = await asking(t, 'abc')
  socket.write('GET /app.js HTTP/1.1\r\nHost: h\r\nRange: bytes=1-\r\nConnection: close\r\n\r\n')
  t.match(await readAll(socket), /\r\n\r\nabcHTTP\/1\.1 206 [^]*\r\n\r\nbc$/)
})

await test('a navigation gets index.html while there is one, and the page of a problem while it is being replaced', async (t) => {
  const dir = t.testdir({})
  const { port } = await testServer(t, { ...ALONE, STATIC_DIR: dir })
  const headers = { 'sec-fetch-mode': 'navigate', accept: 'text/html' }
  const get = () => sendTo(port, 'GET', '/deep/link', { headers })
  for (const content of ['first', 'second']) {
    const { status, headers, text } = await get()
    t.match([status, headers['cache-control'], text], [404, 'no-store', 'not_found'])
    writeFileSync(`${dir}/index.html`, content)
    t.match(await get(), { status: 200, text: content })
    rmSync(`${dir}/index.html`)
  }
})

await test('of a file that is gone or closed when it is opened, the problem has no header', async (t) => {
  const { createReadStream } = fs
  let change: (path: string) => void = rmSync
  t.intercept(fs, 'createReadStream', {
    value: (...given: Parameters<typeof createReadStream>) => {
      change(String(given[0]))
      return createReadStream(...given)
    },
  })
  const dir = t.testdir({ 'app.js': 'a'.repeat(3000), 'app.js.br': 'b', 'other.js': 'c'.repeat(3000) })
  const { port } = await testServer(t, { ...ALONE, STATIC_DIR: dir })
  const get = (path: string, headers: Record<string, string>) => sendTo(port, 'GET', path, { headers })
  const responses = [
    await get('/app.js', { 'accept-encoding': 'br' }),
    await get('/other.js', { 'accept-encoding': 'gzip' }),
    await get('/app.js', { range: 'bytes=0-0' }),
  ]
  writeFileSync(`${dir}/app.js`, 'a'.repeat(3000))
  change = (path) => {
    rmSync(path)
    mkdirSync(path)
  }
  responses.push(await get('/app.js', { 'accept-encoding': 'gzip' }))
  for (const { status, headers, json } of responses) {
    t.match([status, json['code']], [500, 'internal_error'])
    t.match(headers, { 'content-type': 'application/problem+json', 'cache-control': 'no-store' })
    for (const name of ['content-encoding', 'content-range', 'etag', 'last-modified', 'accept-ranges'])
      t.notOk(name in headers, name)
  }
})
