import { once } from 'node:events'
import { test } from 'tap'
import { rawBrowser } from '../support/browser/raw-browser.ts'
import { closeCode, frame, switchProtocols } from '../support/sockets/raw-frames.ts'
import { failureCount } from '../support/telemetry/lines.ts'
import { nextEvent, until, within } from '../support/time/until.ts'
import { PUBLIC } from '../support/user.ts'
import { startWorld, type World } from '../support/world.ts'

const TEXT = 1
const BINARY = 2
const CLOSE = 8
const PING = 9

const closing = (code: number): Buffer => Buffer.from([code >> 8, code & 0xff])

/** Violations of RFC 6455 and the close code of each. `masked` is what the sender's role demands. */
const VIOLATIONS: [why: string, make: (masked: boolean) => Buffer, code: number][] = [
  ['a text that is not UTF-8', (masked) => frame({ opcode: TEXT, payload: Buffer.from([0xc3, 0x28]), masked }), 1007],
  ['a surrogate in UTF-8', (masked) => frame({ opcode: TEXT, payload: Buffer.from([0xed, 0xa0, 0x80]), masked }), 1007],
  ['a reserved bit', (masked) => frame({ opcode: TEXT, payload: 'x', rsv: 0x20, masked }), 1002],
  ['compression that was not agreed on', (masked) => frame({ opcode: TEXT, payload: 'x', rsv: 0x40, masked }), 1002],
  ['a reserved opcode', (masked) => frame({ opcode: 3, masked }), 1002],
  ['a reserved control opcode', (masked) => frame({ opcode: 11, masked }), 1002],
  ['the wrong masking', (masked) => frame({ opcode: TEXT, payload: 'x', masked: !masked }), 1002],
  ['a long ping', (masked) => frame({ opcode: PING, payload: Buffer.alloc(126), masked }), 1002],
  ['a ping in fragments', (masked) => frame({ opcode: PING, fin: false, masked }), 1002],
  ['a continuation of nothing', (masked) => frame({ opcode: 0, payload: 'x', masked }), 1002],
  [
    'a message inside another',
    (masked) => Buffer.concat([frame({ opcode: TEXT, fin: false, masked }), frame({ opcode: BINARY, masked })]),
    1002,
  ],
  ['a close frame of one byte', (masked) => frame({ opcode: CLOSE, payload: 'x', masked }), 1002],
  ...[0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000].map((code): [string, (masked: boolean) => Buffer, number] => [
    `the close code ${code}`,
    (masked) => frame({ opcode: CLOSE, payload: closing(code), masked }),
    1002,
  ]),
  [
    'a close reason that is not UTF-8',
    (masked) => frame({ opcode: CLOSE, payload: Buffer.from([3, 0xe8, 0xff]), masked }),
    1007,
  ],
  ['a message that announces 2^53 bytes', (masked) => frame({ opcode: BINARY, announced: 2 ** 53, masked }), 1009],
  [
    'a million empty fragments',
    (masked) => {
      const empty = frame({ opcode: 0, fin: false, masked })
      return Buffer.concat([frame({ opcode: TEXT, fin: false, masked }), ...Array<Buffer>(1_000_000).fill(empty)])
    },
    1008,
  ],
  [
    'more than 64 KiB of empty pings in the middle of a message, each with its header',
    (masked) => {
      const begin = frame({ opcode: TEXT, payload: 'x', fin: false, masked })
      return Buffer.concat([begin, ...Array<Buffer>(10_923).fill(frame({ opcode: PING, masked }))])
    },
    1008,
  ],
]

/** Every byte until the peer ends the connection. */
async function allOf(socket: NodeJS.ReadableStream): Promise<Buffer> {
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  await within(Promise.race([once(socket, 'end'), once(socket, 'close')]), 'the connection ends')
  return Buffer.concat(chunks)
}

/** Whether a relay between well-behaved peers works. */
async function works(world: World<'scripted'>): Promise<boolean> {
  const client = await world.socket(PUBLIC).opened()
  const peer = await world.upstream.socket()
  peer.send('still here')
  await client.count(1)
  client.socket.close()
  await client.closed
  return client.texts[0] === 'still here'
}

await test('a browser that violates RFC 6455 is closed with the code of the violation, and upstream with 1001', async (t) => {
  const world = await startWorld(t, { upstream: 'scripted' })
  const bystander = await world.socket(PUBLIC).opened()
  const bystanders = await world.upstream.socket()
  for (const [why, make, code] of VIOLATIONS) {
    const browser = await rawBrowser({ port: world.server.port, publicUrl: world.server.url, path: PUBLIC })
    const peer = await world.upstream.socket()
    let messages = 0
    peer.on('message', () => messages++)
    const response = allOf(browser)
    const closed = nextEvent(peer, 'close')
    browser.write(make(true))
    t.equal((await closed)[0], 1001, `${why}: upstream is closed`)
    t.equal(closeCode(await response), code, `${why}: ${code}`)
    t.equal(messages, 0, 'upstream receives nothing of it')
    browser.destroy()
  }
  bystanders.send('untouched')
  t.same((await bystander.count(1)).length, 1)
  t.notOk(
    world.server.log.some(({ level }) => Number(level) >= 40),
    'a browser causes no warning in the log',
  )
  bystander.socket.close()
  await world.quiet()
})

await test('an upstream that violates RFC 6455 is closed with the code of the violation, and the browser with 1013', async (t) => {
  const world = await startWorld(t, { upstream: 'scripted' })
  for (const [why, make, code] of VIOLATIONS) {
    let response: Promise<Buffer> | undefined
    world.upstream.onUpgrade = (request, socket) => {
      switchProtocols(request, socket)
      response = allOf(socket)
      socket.write(make(false))
    }
    const client = world.socket(PUBLIC)
    const { code: seen } = await client.closed
    t.equal(seen, code === 1009 ? 1009 : 1013, `${why}: the browser is not blamed`)
    t.equal(closeCode((await response) ?? Buffer.alloc(0)), code, `${why}: ${code}`)
    t.same(client.received, [])
  }
  world.upstream.onUpgrade = undefined
  t.ok(await works(world))
  const { log } = world.server
  await until(() => failureCount(log, 'upstream broke the WebSocket protocol') === VIOLATIONS.length)
  await world.quiet()
})

await test('a message over the limit closes both peers with 1009 or 1001, after the messages before it have passed', async (t) => {
  const world = await startWorld(t, {
    upstream: 'scripted',
    settings: { MAX_MESSAGE_BYTES: '1000', MAX_UPSTREAM_MESSAGE_BYTES: '5000' },
  })
  const big = await world.socket(PUBLIC).opened()
  const spared = await world.upstream.socket()
  let messages = 0
  spared.on('message', () => messages++)
  const over = nextEvent(spared, 'close')
  big.socket.send('x'.repeat(1000))
  big.socket.send('x'.repeat(1001))
  big.socket.send('after it')
  t.equal((await big.closed).code, 1009)
  await over
  t.equal(messages, 1, 'the message before it still passes')

  const pieces = await world.socket(PUBLIC).opened()
  await world.upstream.socket()
  for (let count = 0; count < 11; count++) pieces.socket.send('x'.repeat(100), { fin: false })
  t.equal((await pieces.closed).code, 1009, 'a fragmented message counts as a whole')
  t.notOk(world.server.log.some(({ msg }) => msg.includes('broke')))

  const innocent = await world.socket(PUBLIC).opened()
  const rude = await world.upstream.socket()
  const answered = nextEvent(rude, 'close')
  rude.send('x'.repeat(5000))
  rude.send('x'.repeat(5001))
  t.same(await innocent.closed, { code: 1009, reason: 'message_too_big' })
  t.same(innocent.texts, ['x'.repeat(5000)])
  t.equal((await answered)[0], 1009)
  t.match(
    world.server.log.find(({ msg }) => msg.includes('broke')),
    { why: 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH', kind: 'public' },
  )
  await until(() => world.upstream.open === 0)
})
