import { test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { ALONE } from '../support/server/settings.ts'

const read = (settings: Record<string, string>) => readConfig({ ...ALONE, ...settings })

await test('Values that were not set follow the settings on which they depend', (t) => {
  for (const [REDIS_URL, replicas] of [
    ['redis://a', 0],
    ['redis+sentinel://a,b/name', 1],
    ['redis+cluster://a', 1],
    ['redis://a,redis://b', 1],
  ] as const) {
    t.equal(read({ REDIS_URL }).idempotency.replicas, replicas, REDIS_URL)
    t.equal(read({ REDIS_URL, IDEMPOTENCY_REPLICAS: '2' }).idempotency.replicas, 2)
    const { budget } = read({ REDIS_URL, UPSTREAM_BUDGET: '300/60', UPSTREAM_BUDGET_ALONE: '0.2' }).upstream
    t.equal(budget?.alone, 0.2)
  }
  t.equal(read({ UPSTREAM_BUDGET: '300/60', UPSTREAM_BUDGET_ALONE: '0.2' }).upstream.budget?.alone, 0, 'without Redis')
  t.equal(read({}).idempotency.replicas, 0)
  t.equal(read({ MAX_PUBLIC_RELAYS_PER_IP: '7' }).relay.publicHandshakesPerMinute, 28)
  t.equal(read({ MAX_PUBLIC_RELAYS_PER_IP: '7', PUBLIC_HANDSHAKES_PER_MINUTE: '0' }).relay.publicHandshakesPerMinute, 0)
  t.equal(read({}).upstream.appId, ALONE.CLIENT_ID)
  t.equal(read({ SERVICE_APP_ID: 'other' }).upstream.appId, 'other')
  t.equal(read({ UPSTREAM_HEADERS_SECONDS: '20', UPSTREAM_BODY_SECONDS: '1' }).http.connectionIdleMs, 106_000)
  t.equal(read({ UPSTREAM_BODY_SECONDS: '100' }).http.connectionIdleMs, 160_000)
  const identity = { IDENTITY_PATH: '/me', IDENTITY_POINTER: '/id' }
  t.equal(read(identity).identity?.maxSessions, 100)
  t.equal(read({ ...identity, MAX_SESSIONS_PER_SUBJECT: '0' }).identity?.maxSessions, Infinity)
  t.same(read({ PORT: '05', MAX_RELAYS: '10', OPS_PORT: '9464' }).changedLimits, { PORT: 5, MAX_RELAYS: 10 })
  t.end()
})

await test('UPSTREAM_BUDGET has its windows from the shortest to the longest, in whatever order they are set', (t) => {
  const { budget } = read({ UPSTREAM_BUDGET: '1000/600,300/60' }).upstream
  t.same(budget?.windows, [
    { calls: 300, windowMs: 60_000 },
    { calls: 1000, windowMs: 600_000 },
  ])
  t.end()
})
