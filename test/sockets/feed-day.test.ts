import { randomInt } from 'node:crypto'
import { test } from 'tap'
import { Day } from '../support/feed/day.ts'
import { MarketUpstream } from '../support/feed/market-upstream.ts'
import { measuredServer } from '../support/measured-server.ts'

/** `DAY_MEMBERS=1000 DAY_LOSSES=20 npm test -- --timeout=900 test/sockets/feed-day.test.ts` is a whole day. */
const MEMBERS = Number(process.env['DAY_MEMBERS'] ?? 40)
const LOSSES = Number(process.env['DAY_LOSSES'] ?? 2)
const SEED = Number(process.env['SEED'] ?? randomInt(2 ** 31))
/** Rounds of coming, going and prices between two losses. */
const ROUNDS = 4
const MAX_GROWTH_BYTES = 4 * 1024 * 1024

await test(`PUBLIC_FEED=shared: ${MEMBERS} members come and go while upstream is lost ${LOSSES} times`, async (t) => {
  const upstream = await MarketUpstream.start(t, SEED)
  const server = await measuredServer(t, {
    WS_URL: upstream.wsUrl,
    PUBLIC_FEED: 'shared',
    PUBLIC_HANDSHAKES_PER_MINUTE: '0',
    FEED_LINGER_SECONDS: '1',
    FEED_RECONNECT_SPREAD_SECONDS: '1',
    FEED_SUBSCRIPTIONS_PER_SOCKET: '5',
  })
  const day = new Day(upstream, server, SEED)
  t.teardown(() => day.leave(1))
  // Each upstream socket is late by itself, so that a history overtakes prices and is overtaken by them.
  await upstream.order({ do: 'jitter', ms: 3 })
  await day.joinUpTo(MEMBERS)
  t.same(await day.late(), [], `all are served, SEED=${SEED}`)
  const usedBefore = await day.end()
  for (let loss = 0; loss < LOSSES; loss++) {
    for (let round = 0; round < ROUNDS; round++) {
      await day.joinUpTo(MEMBERS)
      await day.move()
      t.same((await day.late()).slice(0, 5), [], `each has the newest price of each of its streams, SEED=${SEED}`)
      t.same(day.faults.slice(0, 3), [], `nothing missing, nothing twice, SEED=${SEED}`)
      day.leave(0.3)
    }
    await day.joinUpTo(MEMBERS)
    const quiet = await day.join([])
    // Every second time upstream refuses every second subscription while the feed comes back.
    await upstream.order({ do: 'refuse', every: loss % 2 === 0 ? 2 : 0 })
    const closes = await day.lose(loss % 2 === 0 ? 'reset' : 'close')
    const told = new Set(closes.map(({ code, reason }) => `${code} ${reason.replace(/;.*/, '')}`))
    t.same([...told], ['1013 upstream_lost'], `all ${closes.length} with streams are told, SEED=${SEED}`)
    t.equal(quiet.end, undefined, 'whoever has no stream stays')
    quiet.leave()
    await upstream.order({ do: 'refuse', every: 0 })
  }
  await day.joinUpTo(MEMBERS)
  await day.move()
  t.same((await day.late()).slice(0, 5), [], `each has the newest price of each of its streams, SEED=${SEED}`)
  t.same(day.faults.slice(0, 3), [], `nothing missing, nothing twice, SEED=${SEED}`)
  t.equal(day.size, MEMBERS, 'all have come back')
  const { running, wanted } = await day.streams()
  t.same(running, wanted, 'upstream sends the streams that are wanted, and no others')
  const growth = (await day.end()) - usedBefore
  t.ok(growth < MAX_GROWTH_BYTES, `memory in use grows by ${(growth / 1024).toFixed(0)} KiB`)
})
