import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { test, type Test } from 'tap'
import { until } from '../support/time/until.ts'
import { jsonResponse } from './http.ts'
import { Link } from './link.ts'

/** A connection through a link, and its far end. */
async function joined(t: Test) {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  let time = 0
  const link = await Link.start(t, 'a link', () => (server.address() as AddressInfo).port, { now: () => time })
  const accepted = once(server, 'connection')
  const near = connect(link.port, '127.0.0.1')
  const [far] = (await accepted) as [Socket]
  const [atNear, atFar] = [near, far].map((socket) => {
    const seen = { text: '', isClosed: false }
    socket.on('data', (bytes: Buffer) => (seen.text += bytes.toString()))
    socket.on('close', () => (seen.isClosed = true)).on('error', () => undefined)
    t.teardown(() => socket.destroy())
    return seen
  }) as [{ text: string; isClosed: boolean }, { text: string; isClosed: boolean }]
  return { server, link, near, far, atNear, atFar, at: (ms: number) => void (time = ms) }
}

await test('A link passes everything on, and knows when it had come', async (t) => {
  const { link, near, far, atNear, atFar, at } = await joined(t)
  at(1)
  near.write('request')
  await until(() => atFar.text === 'request')
  far.write('reply')
  await until(() => atNear.text === 'reply')
  t.equal(link.sentAt(far.remotePort ?? 0), 1)
  near.end()
  await until(() => atFar.isClosed)
})

await test('A link that holds one direction passes the other, and then what it has held', async (t) => {
  const { link, near, far, atNear, atFar, at } = await joined(t)
  const heal = link.add({ holds: ['request'] })
  at(1)
  near.write('held')
  far.write('reply')
  await until(() => atNear.text === 'reply')
  t.equal(atFar.text, '')
  at(2)
  heal()
  await until(() => atFar.text === 'held')
  t.equal(link.sentAt(far.remotePort ?? 0), 1, 'it had come before')
})

await test('A link that holds tells nobody that the other end has gone', async (t) => {
  const { link, near, far, atNear, atFar } = await joined(t)
  const heal = link.add({ holds: ['request'] })
  near.end('last words')
  far.write('reply')
  await until(() => atNear.text === 'reply' || atNear.isClosed)
  t.notOk(atFar.isClosed)
  heal()
  await until(() => atFar.isClosed)
  t.equal(atFar.text, 'last words')
})

for (const [at, arrives] of [
  ['before', ''],
  ['within', 'rep'],
  ['after', 'reply!'],
] as const)
  await test(`A link that cuts ${at} a reply: '${arrives}' arrives, and both ends close`, async (t) => {
    const { link, near, far, atNear, atFar } = await joined(t)
    link.add({ cuts: (way) => (way === 'reply' ? at : undefined) })
    near.write('request')
    await until(() => atFar.text === 'request')
    far.write('reply!')
    await until(() => atNear.isClosed && atFar.isClosed)
    t.equal(atNear.text, arrives)
  })

await test('A link that refuses breaks open connections and closes new ones', async (t) => {
  const { link, atNear, atFar } = await joined(t)
  link.add({ refuses: true })
  await until(() => atNear.isClosed && atFar.isClosed)
  const another = connect(link.port, '127.0.0.1').on('error', () => undefined)
  await once(another, 'close')
  t.ok(another.destroyed)
})

await test('A slow link passes everything on in order', async (t) => {
  const { link, near, atFar } = await joined(t)
  link.add({ slowMs: 20 })
  near.write('one ')
  near.write('two ')
  await until(() => atFar.text !== '')
  near.write('three')
  await until(() => atFar.text === 'one two three')
  t.ok(true)
})

await test('A link that responds itself passes on neither a whole request nor a part of one', async (t) => {
  const { link, near, atNear, atFar } = await joined(t)
  link.add({ answers: ({ path, body }) => (path === '/refused' ? jsonResponse(429, { body }) : undefined) })
  near.write('POST /refused HTTP/1.1\r\ncontent-length: 4\r\n\r\nsp')
  near.write('am')
  await until(() => atNear.text.endsWith('{"body":"spam"}'))
  t.match(atNear.text, /^HTTP\/1\.1 429 /)
  t.equal(atFar.text, '')
  near.write('GET /else HTTP/1.1\r\n\r\n')
  await until(() => atFar.text === 'GET /else HTTP/1.1\r\n\r\n')
})

await test('A link rewrites bytes', async (t) => {
  const { link, near, atFar } = await joined(t)
  link.add({ rewrites: (_way, bytes) => Buffer.from(bytes.toString().toUpperCase()) })
  near.write('request')
  await until(() => atFar.text === 'REQUEST')
  t.ok(true)
})

await test('A link tells connections apart by what was first asked on them', async (t) => {
  const { link, near, far, atNear, atFar } = await joined(t)
  link.add({ of: (opening) => opening.startsWith('other'), holds: ['request'] })
  near.write('one ')
  await until(() => atFar.text === 'one ')
  near.write('other')
  await until(() => atFar.text === 'one other')
  link.add({ of: (opening) => opening.startsWith('one '), holds: ['request'] })
  near.write('held')
  far.write('reply')
  await until(() => atNear.text === 'reply')
  t.equal(atFar.text, 'one other')
})

await test('What waits at its sender is taken back by a reset, and by no other end', async (t) => {
  for (const isReset of [true, false]) {
    const { server, link, near, atFar } = await joined(t)
    const heal = link.add({ holds: ['request'], isAtSender: true })
    await new Promise((resolve) => near.write('last words', resolve))
    if (isReset) near.resetAndDestroy()
    else near.end()
    // Once it has joined another connection, the link has heard of this one.
    const another = connect(link.port, '127.0.0.1')
    t.teardown(() => another.destroy())
    await once(server, 'connection')
    heal()
    await until(() => atFar.isClosed)
    t.equal(atFar.text, isReset ? '' : 'last words')
  }
})
