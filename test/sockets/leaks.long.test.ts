import { test } from 'tap'
import type { WebSocket } from 'ws'
import { PUBLIC, TRADING } from '../support/user.ts'
import { startWorld, RELAY } from '../support/world.ts'
import { nodeWarnings } from '../support/telemetry/node-warnings.ts'

/** A multiple of eight. RELAYS=5000 repeats the run by which this was judged. */
const ROUNDS = Number(process.env['RELAYS'] ?? 2000)

/** How many resources keep the event loop alive, by kind. */
function activeResources(): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1
  return counts
}

await test('thousands of relays open and close without leaving timers, connections, listeners or buffered bytes', async (t) => {
  const world = await startWorld(t, { ...RELAY, redis: true, settings: { PUBLIC_HANDSHAKES_PER_MINUTE: '0' } })
  let newest: WebSocket | undefined
  world.upstream.onSocket = (socket) => (newest = socket)
  const round = async (path: string): Promise<void> => {
    const client = await world.socket(path).opened()
    client.socket.send('{"ping":1}')
    client.socket.close(1000)
    await client.closed
  }
  const warnings = nodeWarnings(t)
  await round(TRADING)
  await world.quiet()
  const before = activeResources()
  // Eight run at a time. Two of them are trading sockets of the one session.
  await Promise.all(
    Array.from({ length: 8 }, async (_, lane) => {
      for (let index = 0; index < ROUNDS / 8; index++) await round(lane < 2 ? TRADING : PUBLIC)
    }),
  )
  await world.quiet()
  const after = activeResources()
  for (const kind of ['Timeout', 'TCPSocketWrap', 'Immediate']) {
    const more = (after[kind] ?? 0) - (before[kind] ?? 0)
    t.ok(more < 20, `${more} more ${kind}`)
  }
  t.same(warnings, [], 'no emitter has too many listeners')
  t.equal((await world.metric('bff_relay_operations_total')).get('operation="ping"'), ROUNDS + 1)
  t.equal((await world.metric('bff_relay_messages_total')).get('direction="to_upstream"'), ROUNDS + 1)
  t.equal((await world.metric('bff_relay_bytes_total')).get('direction="to_upstream"'), (ROUNDS + 1) * 10)
  const endings = await world.metric('bff_relay_endings_total')
  t.same([...endings.keys()].toSorted(), ['kind="public",code="1000"', 'kind="trading",code="1000"'])
  t.equal(
    [...endings.values()].reduce((sum, count) => sum + count, 0),
    ROUNDS + 1,
  )
  t.equal((await world.metric('bff_relay_buffered_bytes')).get(''), 0)

  // A relay is counted once, although three causes end it at the same time.
  const client = await world.socket(TRADING).opened()
  newest?.close(1000)
  client.socket.close(1000)
  await world.logOut()
  await client.closed
  await world.quiet()
  const closes = [...(await world.metric('bff_relay_endings_total')).values()]
  t.equal(
    closes.reduce((sum, count) => sum + count, 0),
    ROUNDS + 2,
  )
})
