import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { test } from 'tap'
import { WebSocket } from 'ws'
import type { BrowserSocket, Received } from '../support/browser-socket.ts'
import { PUBLIC, relayWorld, TRADING, type RelayWorld } from '../support/relay-world.ts'
import { until } from '../support/until.ts'

const SIZES = [0, 1, 2, 124, 125, 126, 127, 1000, 16_383, 16_384, 65_534, 65_535, 65_536]

/** A text of so many bytes, with characters of every length in UTF-8. */
function textOf(bytes: number): Buffer {
  const letters = ['a', 'é', '€', '😀']
  let text = ''
  let left = bytes
  while (left > 0) {
    const letter = letters[randomInt(Math.min(left, letters.length))] ?? 'a'
    text += letter
    left -= Buffer.byteLength(letter)
  }
  return Buffer.from(text)
}

/** Sends random messages: whole, in fragments, in bursts, with pings in between. Returns what was sent. */
async function sendRandom(socket: WebSocket, count: number, maxBytes: number): Promise<Received[]> {
  const sent: Received[] = []
  for (let index = 0; index < count; index++) {
    const limit = SIZES[randomInt(SIZES.length)] ?? 0
    const bytes = Math.min(maxBytes, randomInt(4) === 0 ? randomInt(limit + 1) : limit)
    const isBinary = randomInt(2) === 0
    const data = isBinary ? randomBytes(bytes) : textOf(bytes)
    sent.push({ data, isBinary })
    let from = 0
    while (randomInt(3) === 0) {
      const to = from + randomInt(data.length - from + 1)
      socket.send(data.subarray(from, to), { binary: isBinary, fin: false })
      if (randomInt(2) === 0) socket.ping(randomBytes(randomInt(126)))
      from = to
    }
    socket.send(data.subarray(from), { binary: isBinary, fin: true })
    if (randomInt(5) === 0) await new Promise((resolve) => void setImmediate(resolve))
  }
  return sent
}

function received(socket: WebSocket): Received[] {
  const messages: Received[] = []
  socket.on('message', (data: Buffer, isBinary) => messages.push({ data, isBinary }))
  return messages
}

/** Where two sequences differ first; undefined: nowhere. */
function difference(sent: readonly Received[], got: readonly Received[]): string | undefined {
  for (const [index, message] of sent.entries()) {
    const other = got[index]
    if (other === undefined) return `${got.length} of ${sent.length} came`
    if (other.isBinary !== message.isBinary) return `message ${index} changed its type`
    if (!other.data.equals(message.data))
      return `message ${index} of ${message.data.length} bytes was changed`
  }
  return got.length === sent.length ? undefined : `${got.length} came, ${sent.length} were sent`
}

async function joined(world: RelayWorld, path: string): Promise<{ line: BrowserSocket; peer: WebSocket }> {
  const line = await world.line(path).opened()
  return { line, peer: await world.upstream.socket() }
}

await test('random messages pass both ways at once, in order and byte for byte', async (t) => {
  const world = await relayWorld(t)
  for (const path of [PUBLIC, TRADING]) {
    const { line, peer } = await joined(world, path)
    const atPeer = received(peer)
    const [down, up] = await Promise.all([
      sendRandom(peer, 1000, 1_048_576),
      sendRandom(line.socket, 1000, 65_536),
    ])
    await line.count(down.length)
    line.socket.close(1000)
    await once(peer, 'close')
    t.equal(difference(down, line.received), undefined, `${path}: to the browser`)
    t.equal(difference(up, atPeer), undefined, `${path}: to upstream`)
  }
  await world.quiet()
})

await test('messages at their limits', async (t) => {
  const world = await relayWorld(t)
  const { line, peer } = await joined(world, PUBLIC)
  const atPeer = received(peer)
  const large = randomBytes(1_048_576)
  peer.send(large)
  peer.send('')
  peer.send(Buffer.alloc(0))
  const limit = randomBytes(65_536)
  line.socket.send(limit)
  line.socket.send('')
  line.socket.send(Buffer.alloc(0))
  await line.count(3)
  await until(() => atPeer.length === 3)
  const empty = Buffer.alloc(0)
  const rest = [
    { data: empty, isBinary: false },
    { data: empty, isBinary: true },
  ]
  t.equal(difference([{ data: large, isBinary: true }, ...rest], line.received), undefined)
  t.equal(difference([{ data: limit, isBinary: true }, ...rest], atPeer), undefined)
})

await test('what upstream says before the browser has its 101 is not lost', async (t) => {
  const world = await relayWorld(t)
  const said = Array.from({ length: 500 }, (_, index) => `early ${index} ${'x'.repeat(500)}`)
  world.upstream.onSocket = (socket) => {
    for (const text of said) socket.send(text)
    socket.close(3001, 'that was all')
  }
  for (const path of [PUBLIC, TRADING]) {
    const line = world.line(path)
    t.same(await line.closed, { code: 3001, reason: 'that was all' })
    t.same(line.texts, said)
  }
  await world.quiet()
})

await test('nothing that was accepted is dropped when a side closes normally', async (t) => {
  const world = await relayWorld(t)
  for (let round = 0; round < 20; round++) {
    const { line, peer } = await joined(world, TRADING)
    const atPeer = received(peer)
    const orders = Array.from({ length: 50 }, (_, index) => `{"buy":"${round}-${index}"}`)
    for (const order of orders) line.socket.send(order)
    line.socket.close(1000)
    await once(peer, 'close')
    t.same(
      atPeer.map(({ data }) => data.toString()),
      orders,
      'the orders of a page that closes at once',
    )
  }
  for (let round = 0; round < 4; round++) {
    const { line, peer } = await joined(world, TRADING)
    const answers = Array.from({ length: 60 }, (_, index) => `${index} ${'x'.repeat(150_000)}`)
    // A page too busy to read: the answers wait here when upstream is gone already.
    line.socket.pause()
    for (const answer of answers) peer.send(answer)
    peer.close(1000, 'done')
    // More than fits into the kernel's buffers and ours: upstream itself is kept waiting.
    await until(async () => ((await world.metric('bff_relay_buffered_bytes')).get('') ?? 0) > 500_000)
    line.socket.resume()
    t.same(await line.closed, { code: 1000, reason: 'done' })
    t.same(line.texts, answers, 'the late answers of an upstream that closes at once')
  }
  await world.quiet()
})

const CODES = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999]

await test('close codes pass', async (t) => {
  const world = await relayWorld(t)
  const long = 'é'.repeat(61)
  for (const [index, code] of CODES.entries()) {
    const reason = ['', 'why', long][index % 3] ?? ''
    const fromUpstream = await joined(world, PUBLIC)
    fromUpstream.peer.close(code, reason)
    t.same(await fromUpstream.line.closed, { code, reason }, `${code} of upstream`)

    const fromBrowser = await joined(world, PUBLIC)
    const closed = once(fromBrowser.peer, 'close')
    fromBrowser.line.socket.close(code, reason)
    const [seen, why] = (await closed) as [number, Buffer]
    t.same({ code: seen, reason: why.toString() }, { code, reason }, `${code} of the browser`)
    t.equal((await fromBrowser.line.closed).code, code)
  }
  await world.quiet()
})

await test('close codes that cannot pass are mapped', async (t) => {
  const world = await relayWorld(t)
  for (const code of [4400, 4401, 4408, 4429, 4499]) {
    const { line, peer } = await joined(world, PUBLIC)
    peer.close(code, 'session_expired')
    t.same(await line.closed, { code: 4000, reason: `${code} session_expired` }, `${code} is ours`)
  }
  const { line: cut, peer: wordy } = await joined(world, PUBLIC)
  wordy.close(4401, '€'.repeat(41))
  t.same(await cut.closed, { code: 4000, reason: `4401 ${'€'.repeat(39)}` })

  const { line: silent, peer: closesSo } = await joined(world, PUBLIC)
  closesSo.close()
  t.same(await silent.closed, { code: 1005, reason: '' }, 'no code stays no code')

  const { line: lost, peer: dies } = await joined(world, PUBLIC)
  dies.terminate()
  t.same(await lost.closed, { code: 1013, reason: 'upstream_lost' })

  const { line: closes, peer: hears } = await joined(world, PUBLIC)
  const heard = once(hears, 'close')
  closes.socket.close()
  t.equal((await heard)[0], 1005)

  const { line: vanishes, peer: learns } = await joined(world, PUBLIC)
  const learnt = once(learns, 'close')
  vanishes.socket.terminate()
  t.equal((await learnt)[0], 1001)
  // Whatever peers choose, the labels stay few.
  t.ok((await world.metric('bff_relay_endings_total')).size < 15)
  await world.quiet()
})
