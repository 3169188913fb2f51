import { test, type Test } from 'tap'
import type { WebSocket } from 'ws'
import type { BrowserSocket } from '../support/browser/browser-socket.ts'
import { IDENTIFIED } from '../support/login/identity.ts'
import { until } from '../support/time/until.ts'
import { PUBLIC, TRADING, type User } from '../support/user.ts'
import { RELAY, startWorld } from '../support/world.ts'

const MIB = 1_048_576
const LIMIT = 8 * MIB
/** What sockets that are being closed may hold besides. */
const CLOSING = 16 * MIB
const MESSAGE = Buffer.alloc(16_384, 'x')
/** More than fits into the kernel buffers of a relay and into MAX_BUFFERED_BYTES. */
const MESSAGES = 1500
/** A message that may be larger than all that waits for a browser to which {@link MESSAGE} is sent, and the limits for it. */
const LARGE = Buffer.alloc(1.5 * MIB)
const LARGE_LIMITS = { MAX_WAITING_BYTES: String(2 * LIMIT), MAX_UPSTREAM_MESSAGE_BYTES: String(2 * MIB) }
const SLOW = { code: 4408, reason: 'slow_consumer' }

const SETTINGS = {
  MAX_WAITING_BYTES: String(LIMIT),
  SLOW_CONSUMER_SECONDS: '3600',
  MAX_PUBLIC_RELAYS_PER_IP: '100',
  MAX_RELAYS_PER_SESSION: '100',
  PUBLIC_HANDSHAKES_PER_MINUTE: '0',
  TRUST_PROXY: '1',
}

/** Sends messages one after the other, each once the one before has left, while the socket is open. */
function flood(socket: WebSocket, messages = MESSAGES, message = MESSAGE): void {
  if (messages === 0 || socket.readyState !== socket.OPEN) return
  socket.send(message, () => flood(socket, messages - 1, message))
}

/** A socket of a user, at a path, from an address. */
type Place = readonly [user: User, path: string, address: string]

const times = (count: number, ...place: Place): Place[] => Array.from({ length: count }, () => place)

/** A world whose sockets come from the address that they are given. */
async function addressedWorld(
  t: Test,
  settings: Record<string, string> = {},
  wanted: typeof RELAY | typeof IDENTIFIED = RELAY,
) {
  const own = 'settings' in wanted ? wanted.settings : {}
  const world = await startWorld(t, { ...wanted, settings: { ...SETTINGS, ...own, ...settings } })
  const valueOf = async (name: string, labels: string): Promise<number> => (await world.metric(name)).get(labels) ?? 0
  const buffered = (): Promise<number> => valueOf('bff_relay_buffered_bytes', '')
  const open = async (user: User, path: string, address: string): Promise<[BrowserSocket, WebSocket]> => {
    const headers = { 'x-forwarded-for': address }
    const client = await user.socket(path, { headers }).opened()
    return [client, await world.upstream.socket()]
  }
  return {
    ...world,
    open,
    /** Opens sockets of browsers that read nothing, and to all of which upstream then sends. */
    async openSlow(...places: readonly Place[]): Promise<BrowserSocket[]> {
      const opened = []
      for (const place of places) opened.push(await open(...place))
      for (const [{ socket }] of opened) socket.pause()
      for (const [, peer] of opened) flood(peer)
      return opened.map(([client]) => client)
    },
    buffered,
    /** Has the first two of these read nothing, and so hold more than any socket that {@link MESSAGE} fills. */
    async slowTwo(opened: readonly [BrowserSocket, WebSocket][]): Promise<[BrowserSocket, WebSocket][]> {
      const slow = opened.slice(0, 2)
      for (const [{ socket }, peer] of slow) {
        socket.pause()
        flood(peer, 12, LARGE)
      }
      await until(async () => (await buffered()) > 2 * LARGE.length, 'two of them read slowly')
      return slow
    },
    /** Resolves once some sockets of this kind have lost, and nothing more comes in for the others. */
    async lossOf(kind: string): Promise<number> {
      const lost = (): Promise<number> => valueOf('bff_relay_closed_for_memory_total', `kind="${kind}"`)
      let before = -1
      await until(async () => {
        const now = await buffered()
        const isSettled = now === before && (await lost()) > 0
        before = now
        return isSettled
      }, `${kind} sockets are closed`)
      return lost()
    },
    lost: (kind: string) => valueOf('bff_relay_closed_for_memory_total', `kind="${kind}"`),
    endings: (kind: string, code: number) => valueOf('bff_relay_endings_total', `kind="${kind}",code="${code}"`),
    openOf: async (kind: string): Promise<number> => valueOf('bff_relays', `kind="${kind}"`),
  }
}

/** Whether a browser gets all messages once it reads. */
async function readsAll(client: BrowserSocket, messages = MESSAGES): Promise<boolean> {
  client.socket.resume()
  return (await client.count(messages)).length === messages
}

await test('of browsers that read nothing so many are closed with 4408 that less than MAX_WAITING_BYTES waits', async (t) => {
  const world = await addressedWorld(t)
  const clients = await world.openSlow(...times(20, world, PUBLIC, '192.0.2.1'))
  const lost = await world.lossOf('public')
  const waiting = await world.buffered()
  t.ok(waiting < LIMIT + CLOSING, `${waiting} bytes wait`)
  t.equal(await world.endings('public', 4408), lost)
  t.equal(await world.openOf('public'), clients.length - lost)
  const closed = []
  // All at once: the server gives a socket that it closes only so long to read.
  for (const { socket } of clients) socket.resume()
  for (const client of clients) {
    await client.count(MESSAGES)
    if (client.received.length < MESSAGES) closed.push(await client.closed)
  }
  const all = Array.from({ length: lost }, () => SLOW)
  t.same(closed, all, 'they read what waited, and why they end; the others read everything')
  await until(async () => (await world.buffered()) === 0, 'nothing waits any more')
  for (const { socket } of clients) socket.close()
  await world.quiet()
})

await test('an office keeps its trading sockets, whatever strangers at its address do', async (t) => {
  const world = await addressedWorld(t)
  const office = '192.0.2.1'
  const traders = await world.openSlow(...times(4, world, TRADING, office))
  const [reader] = await world.open(world, PUBLIC, office)
  await until(async () => (await world.buffered()) > 4 * MIB, 'the traders read slowly, too')
  const strangers = await world.openSlow(...times(10, world.visitor(), PUBLIC, office))
  t.ok((await world.lossOf('public')) < strangers.length)
  t.equal(await world.lost('trading'), 0)
  for (const client of traders) t.ok(await readsAll(client))
  t.equal(reader.socket.readyState, reader.socket.OPEN)
  for (const { socket } of [...strangers, ...traders, reader]) socket.terminate()
  await world.quiet()
})

await test('many sockets at one address, of which few are slow, outlive one slow stranger (IPv6: a /64)', async (t) => {
  const world = await addressedWorld(t, LARGE_LIMITS)
  const office: [BrowserSocket, WebSocket][] = []
  for (let host = 1; host <= 20; host++) office.push(await world.open(world, PUBLIC, `2001:db8::${host}`))
  const slow = await world.slowTwo(office)
  // Each of them holds less than each of the two, but alone.
  const sites = Array.from({ length: 14 }, (_, index) => `2001:db8:0:${index + 1}::1`)
  const strangers = await world.openSlow(...sites.map((site) => [world, PUBLIC, site] as const))
  const lost = await world.lossOf('public')
  t.equal(await world.openOf('public'), office.length + strangers.length - lost)
  for (const [client] of slow) t.ok(await readsAll(client, 12))
  t.ok(office.every(([{ socket }]) => socket.readyState === socket.OPEN))
  for (const client of [...office.map(([each]) => each), ...strangers]) client.socket.terminate()
  await world.quiet()
})

for (const [holder, world, isSession] of [
  ['session', RELAY, true],
  ['subject, whatever its sessions,', IDENTIFIED, false],
] as const) {
  await test(`without strangers, the ${holder} with the most bytes for each of its trading sockets loses one`, async (t) => {
    const addressed = await addressedWorld(t, LARGE_LIMITS, world)
    const [busy, again] = [await addressed.user('busy'), await addressed.user('busy')]
    const sockets: [BrowserSocket, WebSocket][] = []
    while (sockets.length < 10) {
      const who = isSession || sockets.length < 2 ? busy : again
      sockets.push(await addressed.open(who, TRADING, '192.0.2.1'))
    }
    const kept = await addressed.slowTwo(sockets)
    // At the same address.
    const users: User[] = []
    while (users.length < 7) users.push(await addressed.user(`other${users.length}`))
    const others = await addressed.openSlow(
      ...[...users, ...users].map((each) => [each, TRADING, '192.0.2.1'] as const),
    )
    const lost = await addressed.lossOf('trading')
    t.equal(await addressed.endings('trading', 4408), lost)
    for (const [client] of kept) t.ok(await readsAll(client, 12))
    for (const client of [...sockets.map(([each]) => each), ...others]) client.socket.terminate()
  })
}

await test('what waits for an upstream that reads nothing counts, too', async (t) => {
  const world = await addressedWorld(t)
  const opened: [BrowserSocket, WebSocket][] = []
  while (opened.length < 12) opened.push(await world.open(world, PUBLIC, '192.0.2.1'))
  for (const [, peer] of opened) peer.pause()
  for (const [{ socket }] of opened) flood(socket)
  const lost = await world.lossOf('public')
  t.equal(await world.openOf('public'), opened.length - lost)
  for (const [{ socket }] of opened) socket.terminate()
  for (const [, peer] of opened) peer.terminate()
  await until(async () => (await world.buffered()) === 0, 'nothing waits any more')
  await world.quiet()
})

for (const feed of ['relay', 'shared']) {
  await test(`PUBLIC_FEED=${feed}: what browsers send of messages that they never finish counts, too`, async (t) => {
    const world = await addressedWorld(t, { PUBLIC_FEED: feed, MAX_MESSAGE_BYTES: String(2 * MIB) })
    const clients: BrowserSocket[] = []
    while (clients.length < 12) clients.push(await world.socket(PUBLIC).opened())
    for (const { socket } of clients) socket.send(LARGE, { fin: false })
    const lost = await world.lossOf('public')
    t.ok((await world.buffered()) < LIMIT)
    t.equal(await world.endings('public', 4408), lost)
    t.ok(lost < clients.length)
    for (const { socket } of clients) socket.terminate()
    await world.quiet()
  })

  await test(`PUBLIC_FEED=${feed}: browsers that do not read their answers are closed, and others get theirs`, async (t) => {
    const answer = JSON.stringify({ proposal: 'x'.repeat(500_000) })
    const world = await addressedWorld(t, { PUBLIC_FEED: feed, FEED_REQUESTS_PER_MINUTE: '1000' })
    world.upstream.onSocket = (socket) => socket.on('message', () => socket.send(answer))
    const clients: BrowserSocket[] = []
    while (clients.length < 13) {
      const headers = { 'x-forwarded-for': `192.0.2.${clients.length + 1}` }
      clients.push(await world.socket(PUBLIC, { headers }).opened())
    }
    const [reader, ...slow] = clients
    for (const { socket } of slow) {
      socket.pause()
      for (let request = 0; request < 40; request++) socket.send('{"proposal":1}')
    }
    t.ok((await world.lossOf('public')) < slow.length)
    reader?.socket.send('{"proposal":1}')
    t.equal((await reader?.count(1))?.length, 1)
    t.ok((await world.buffered()) < LIMIT + CLOSING)
    for (const { socket } of clients) socket.terminate()
    await until(async () => (await world.buffered()) === 0, 'nothing waits any more')
    await world.quiet()
  })
}
