import { randomInt } from 'node:crypto'
import { test } from 'tap'
import { Day } from '../support/feed/day.ts'
import { MarketUpstream } from '../support/feed/market-upstream.ts'
import { measuredServer } from '../support/server/measured-server.ts'

/** `npm run test:feed` plays a whole day, with 1,000 members and 20 losses. */
const WHOLE_DAY = process.env['DAY_MEMBERS']
const MEMBERS = Number(WHOLE_DAY ?? 40)
const LOSSES = Number(process.env['DAY_LOSSES'] ?? 2)
/** The same choices each time, unless it is a whole day. `SEED=…` repeats them. */
const SEED = Number(process.env['SEED'] ?? (WHOLE_DAY === undefined ? 1 : randomInt(2 ** 31)))
/** Rounds of coming, going and prices between two losses. */
const ROUNDS = 4
/** How much the memory in use may grow from the first half to the second, in which 20,000 members of a whole day come and go. */
const MAX_GROWTH_BYTES = (WHOLE_DAY === undefined ? 4 : 1.5) * 1024 * 1024
/** Garbage collections before memory is read. On a whole day they take three seconds, until most connections have closed. */
const COLLECTIONS = WHOLE_DAY === undefined ? 1 : 15
/** Just below MAX_BUFFERED_BYTES. The members share a process with this test, and read late at times: nothing may be left out for that. */
const CONFLATE_BYTES = 1024 * 1024 - 1

await test(`PUBLIC_FEED=shared: ${MEMBERS} members come and go while upstream is lost ${LOSSES} times`, async (t) => {
  const upstream = await MarketUpstream.start(t, SEED)
  const server = await measuredServer(t, {
    WS_URL: upstream.wsUrl,
    PUBLIC_FEED: 'shared',
    PUBLIC_HANDSHAKES_PER_MINUTE: '0',
    FEED_LINGER_SECONDS: '1',
    FEED_RECONNECT_SPREAD_SECONDS: '1',
    FEED_SUBSCRIPTIONS_PER_SOCKET: '5',
    // All members have one address. While upstream refuses some, its browsers share the requests of one.
    FEED_REQUESTS_PER_MINUTE: '100000',
    FEED_CONFLATE_BYTES: String(CONFLATE_BYTES),
  })
  const day = new Day(upstream, server, SEED)
  t.teardown(() => day.leave(1))
  // Each upstream socket is late by itself, so that a history overtakes prices and is overtaken by them.
  await upstream.order({ do: 'jitter', ms: 3 })
  await day.joinUpTo(MEMBERS)
  t.same(await day.late(), [], `all are served, SEED=${SEED}`)
  const used = [await day.end(COLLECTIONS)]
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
    used.push(await day.end(COLLECTIONS))
  }
  await day.joinUpTo(MEMBERS)
  await day.move()
  t.same((await day.late()).slice(0, 5), [], `each has the newest price of each of its streams, SEED=${SEED}`)
  t.same(day.faults.slice(0, 3), [], `nothing missing, nothing twice, SEED=${SEED}`)
  t.equal(day.size, MEMBERS, 'all have come back')
  const { running, wanted } = await day.streams()
  t.same(running, wanted, 'upstream sends the streams that are wanted, and no others')
  used.push(await day.end(COLLECTIONS))
  t.same(await day.streams(), { running: [], wanted: [] }, 'no stream is left once all have gone')
  // How many connections are still closing differs, so the least values are compared: a leak raises these as well. In the first
  // fifth of the values, caches and compiled code still grow.
  const from = Math.floor(used.length / 5)
  const half = Math.floor(used.length / 2)
  const growth = Math.min(...used.slice(half)) - Math.min(...used.slice(from, half))
  t.comment(`memory in use, in KiB: ${used.map((bytes) => (bytes / 1024).toFixed(0)).join(' ')}`)
  t.ok(growth < MAX_GROWTH_BYTES, `memory in use grows by ${(growth / 1024).toFixed(0)} KiB from one half to the other`)
})
