import { test } from 'tap'
import { LogoutSenders } from '../../src/login/logout-senders.ts'
import { nameOf } from '../../src/oauth/login-identity.ts'
import { providerSessionKey } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { epoch, oidcWorld } from '../support/login/oidc-world.ts'
import { askRedis } from '../support/redis/topologies.ts'
import { SECRETS } from '../support/server/world.ts'

await test('The sessions of one session at the provider are as few in its index as those of their user', async (t) => {
  const world = await oidcWorld(t, {
    redis: true,
    settings: { MAX_SESSIONS_PER_SUBJECT: '2', BACKCHANNEL_LOGOUT: 'true' },
  })
  for (let login = 0; login < 6; login++) await world.logIn('ada', { sid: 's1', iat: epoch(-5) })
  const key = providerSessionKey(nameOf(world.issuer, 's1'), SECRETS)
  const fields = await askRedis({ url: world.redis?.url ?? '' }, ['HKEYS', key])
  const ids = (fields as string[]).filter((id) => /^[\w-]{12}$/.test(id))
  t.ok(ids.length > 0 && ids.length <= 3, `${ids.length} entries`)
})

await test('Strangers together have 5,000 signatures checked in a second, whatever their addresses are', async (t) => {
  const senders = new LogoutSenders(await new MemoryStore().openIndex(), ['198.51.100.0/24'])
  t.teardown(() => senders.close())
  const allowed = (from: (at: number) => string): number =>
    Array.from({ length: 20_000 }, (_each, at) => senders.beginCheck(from(at))).filter(Boolean).length
  const strangers = allowed((at) => `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`)
  // The burst may meet the end of a second.
  t.ok(strangers >= 5000 && strangers <= 10_000, `${strangers} checks`)
  t.ok(senders.beginCheck('198.51.100.1'), 'the provider is not concerned')
})
