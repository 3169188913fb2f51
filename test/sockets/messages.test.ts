import { setImmediate as nextTurn } from 'node:timers/promises'
import * as fc from 'fast-check'
import { test } from 'tap'
import type { WebSocket } from 'ws'
import type { Received } from '../support/browser/browser-socket.ts'
import { nextEvent, until } from '../support/time/until.ts'
import { PUBLIC, TRADING } from '../support/user.ts'
import { startWorld, type World, RELAY } from '../support/world.ts'

/** Where lengths, frame headers and buffers change their form. */
const SIZES = [0, 1, 2, 124, 125, 126, 127, 1000, 16_383, 16_384, 65_534, 65_535, 65_536]
/** Runs of the property, and the longest that they and the search for a smaller failure may take. */
const RUNS = { numRuns: 30, interruptAfterTimeLimit: 15_000 }

/** How a peer sends one message. */
interface Sending {
  readonly isBinary: boolean
  readonly bytes: number
  /** Varies the content. */
  readonly seed: number
  /** Where the message is cut into fragments, as parts of its length in percent, ascending. */
  readonly cuts: readonly number[]
  /** Lengths of the pings after the fragments; undefined: no ping. */
  readonly pings: readonly (number | undefined)[]
  /** Whether the sender waits for a turn of its event loop afterwards, so that the next message is read apart. */
  readonly waits: boolean
}

const sending: fc.Arbitrary<Sending> = fc.record({
  isBinary: fc.boolean(),
  bytes: fc.oneof(fc.constantFrom(...SIZES), fc.nat(65_536)),
  seed: fc.nat(0xffff),
  cuts: fc.array(fc.nat(100), { maxLength: 4 }).map((cuts) => cuts.toSorted((a, b) => a - b)),
  pings: fc.array(fc.option(fc.nat(125), { nil: undefined }), { minLength: 4, maxLength: 4 }),
  waits: fc.boolean(),
})
const sendings = fc.array(sending, { maxLength: 80 })

/** Content that two messages hardly ever share: bytes, or characters of every length in UTF-8. */
function contentOf({ isBinary, bytes, seed }: Pick<Sending, 'isBinary' | 'bytes' | 'seed'>): Buffer {
  if (isBinary) return Buffer.alloc(bytes).map((_, at) => (at * 31 + seed + (at >> 8)) & 0xff) as Buffer
  const letters = ['a', 'é', '€', '😀']
  let text = ''
  for (let left = bytes, at = seed; left > 0; at = (at * 31 + 7) % 65_521) {
    const letter = letters[at % Math.min(left, letters.length)] ?? 'a'
    text += letter
    left -= Buffer.byteLength(letter)
  }
  return Buffer.from(text)
}

/** Sends messages one after the other. Returns what the other peer must receive. */
async function sendAll(socket: WebSocket, plan: readonly Sending[]): Promise<Received[]> {
  const sent: Received[] = []
  for (const each of plan) {
    const { isBinary, cuts, pings, waits } = each
    const data = contentOf(each)
    sent.push({ data, isBinary })
    let from = 0
    for (const [index, cut] of cuts.entries()) {
      const to = Math.floor((data.length * cut) / 100)
      socket.send(data.subarray(from, to), { binary: isBinary, fin: false })
      const ping = pings[index]
      if (ping !== undefined) socket.ping(Buffer.alloc(ping, index))
      from = to
    }
    socket.send(data.subarray(from), { binary: isBinary, fin: true })
    if (waits) await nextTurn()
  }
  return sent
}

function received(socket: WebSocket): Received[] {
  const messages: Received[] = []
  socket.on('message', (data: Buffer, isBinary) => messages.push({ data, isBinary }))
  return messages
}

/** Where two sequences of messages first differ; undefined when they are equal. */
function difference(sent: readonly Received[], got: readonly Received[]): string | undefined {
  for (const [index, message] of sent.entries()) {
    const other = got[index]
    if (other === undefined) return `${got.length} of ${sent.length} came`
    if (other.isBinary !== message.isBinary) return `message ${index} changed its type`
    if (!other.data.equals(message.data)) return `message ${index} of ${message.data.length} bytes was changed`
  }
  return got.length === sent.length ? undefined : `${got.length} came, ${sent.length} were sent`
}

/** One relay: both peers send at once, then the browser closes. @throws Error where a message is lost or changed */
async function passes(
  world: World<'scripted'>,
  path: string,
  down: readonly Sending[],
  up: readonly Sending[],
): Promise<void> {
  const { client, peer } = await world.joined(path)
  const atPeer = received(peer)
  const closed = nextEvent(peer, 'close')
  const [sentDown, sentUp] = await Promise.all([sendAll(peer, down), sendAll(client.socket, up)])
  // A run that waits in vain must be short, so that the search for a smaller failure gets far.
  const isComplete = (): boolean => client.received.length >= sentDown.length
  await until(isComplete, 'every message arrives', 2000).catch(() => undefined)
  client.socket.close(1000)
  await closed
  const atBrowser = difference(sentDown, client.received)
  const atUpstream = difference(sentUp, atPeer)
  if (atBrowser !== undefined) throw new Error(`to the browser: ${atBrowser}`)
  if (atUpstream !== undefined) throw new Error(`to upstream: ${atUpstream}`)
}

await test('messages of any size, type and fragmentation pass both ways at once, in order and byte for byte', async (t) => {
  const world = await startWorld(t, RELAY)
  for (const path of [PUBLIC, TRADING]) {
    // On a failure this throws with the seed and the path that repeat it.
    await fc.assert(
      fc.asyncProperty(sendings, sendings, (down, up) => passes(world, path, down, up)),
      RUNS,
    )
  }
  await world.quiet()
})

await test('empty messages and messages of exactly MAX_MESSAGE_BYTES pass', async (t) => {
  const world = await startWorld(t, RELAY)
  const { client, peer } = await world.joined(PUBLIC)
  const atPeer = received(peer)
  const large = contentOf({ isBinary: true, bytes: 1_048_576, seed: 1 })
  peer.send(large)
  peer.send('')
  peer.send(Buffer.alloc(0))
  const limit = contentOf({ isBinary: true, bytes: 65_536, seed: 2 })
  client.socket.send(limit)
  client.socket.send('')
  client.socket.send(Buffer.alloc(0))
  await client.count(3)
  await until(() => atPeer.length === 3)
  const empty = Buffer.alloc(0)
  const rest = [
    { data: empty, isBinary: false },
    { data: empty, isBinary: true },
  ]
  t.equal(difference([{ data: large, isBinary: true }, ...rest], client.received), undefined)
  t.equal(difference([{ data: limit, isBinary: true }, ...rest], atPeer), undefined)
})

await test('messages that upstream sends before the browser has its 101 reach the browser', async (t) => {
  const world = await startWorld(t, RELAY)
  const early = Array.from({ length: 500 }, (_, index) => `early ${index} ${'x'.repeat(500)}`)
  world.upstream.onSocket = (socket) => {
    for (const text of early) socket.send(text)
    socket.close(3001, 'that was all')
  }
  for (const path of [PUBLIC, TRADING]) {
    const client = world.socket(path)
    t.same(await client.closed, { code: 3001, reason: 'that was all' })
    t.same(client.texts, early)
  }
  await world.quiet()
})

await test('messages that a peer sent before its close frame reach the other peer', async (t) => {
  const world = await startWorld(t, RELAY)
  for (let round = 0; round < 20; round++) {
    const { client, peer } = await world.joined(TRADING)
    const atPeer = received(peer)
    const orders = Array.from({ length: 50 }, (_, index) => `{"buy":"${round}-${index}"}`)
    for (const order of orders) client.socket.send(order)
    client.socket.close(1000)
    await nextEvent(peer, 'close')
    t.same(
      atPeer.map(({ data }) => data.toString()),
      orders,
      'upstream receives the orders of a page that closes at once',
    )
  }
  for (let round = 0; round < 4; round++) {
    const { client, peer } = await world.joined(TRADING)
    const responses = Array.from({ length: 60 }, (_, index) => `${index} ${'x'.repeat(150_000)}`)
    // The page reads nothing. The responses wait in the server after upstream has closed.
    client.socket.pause()
    for (const response of responses) peer.send(response)
    peer.close(1000, 'done')
    // The responses exceed the buffers of the kernel and the relay, so upstream waits.
    await until(async () => ((await world.metric('bff_relay_buffered_bytes')).get('') ?? 0) > 500_000)
    client.socket.resume()
    t.same(await client.closed, { code: 1000, reason: 'done' })
    t.same(client.texts, responses, 'the browser receives the responses of an upstream that closes at once')
  }
  await world.quiet()
})
