import { test } from 'tap'
import { randomFrom } from '../../sandbox/upstream/market.ts'
import { KeyedStorm } from '../support/idempotency/keyed-storm.ts'
import { OrderUpstream } from '../support/idempotency/order-upstream.ts'
import { newSession, sessionInstance } from '../support/sessions/session-instance.ts'
import { ALONE } from '../support/server/settings.ts'
import { SECRETS, testRedis, testServer } from '../support/server/test-server.ts'

const KEYS = 150
const SPREAD_MS = 1000
/** Longer than a command may take, so that some records are written without a reply. */
const FROZEN_MS = 1700
const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)

/** `npm run test:idempotency` kills instances and Redis as well. */
await test('Many keys on three instances are sent at most once, while upstream fails and Redis freezes', async (t) => {
  t.comment(`SEED=${SEED}`)
  const upstream = await OrderUpstream.start(t)
  const redis = await testRedis(t)
  const sessions = await sessionInstance(t, redis.url)
  const ids = await Promise.all([newSession(sessions), newSession(sessions)])
  const settings = {
    ...ALONE,
    API_URL: upstream.url,
    REDIS_URL: redis.url,
    SESSION_SECRETS: SECRETS,
    LOG_LEVEL: 'warn',
  }
  const servers = await Promise.all([testServer(t, settings), testServer(t, settings), testServer(t, settings)])
  const storm = new KeyedStorm({
    upstream,
    ports: servers.map(({ port }) => port),
    cookies: ids.map(sessions.cookie),
    keys: KEYS,
    spreadMs: SPREAD_MS,
    random: randomFrom(SEED),
  })
  const over = storm.run()
  setTimeout(() => redis.process.kill('SIGSTOP'), SPREAD_MS / 2)
  setTimeout(() => redis.process.kill('SIGCONT'), SPREAD_MS / 2 + FROZEN_MS)
  await over
  await storm.settle()
  t.comment(JSON.stringify(storm.counts))
  t.same(storm.faults([]), [])
  t.same(await storm.faultsOfOtherCalls(), [])
})
