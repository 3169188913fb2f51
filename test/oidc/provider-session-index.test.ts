import { test } from 'tap'
import { LogoutSenders } from '../../src/login/logout-senders.ts'
import { nameOf } from '../../src/oauth/login-identity.ts'
import { providerSessionKey } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { epoch, oidcWorld } from '../support/login/oidc-world.ts'
import { askRedis } from '../support/redis/topologies.ts'
import { SECRETS } from '../support/server/test-server.ts'

await test('The sessions of one session at the provider are as few in its index as those of their user', async (t) => {
  const world = await oidcWorld(t, {
    redis: true,
    settings: { MAX_SESSIONS_PER_SUBJECT: '2', BACKCHANNEL_LOGOUT: 'true' },
  })
  for (let login = 0; login < 6; login++) await world.user('ada', { sid: 's1', iat: epoch(-5) })
  const key = providerSessionKey(nameOf(world.issuer, 's1'), SECRETS)
  const fields = await askRedis({ url: world.redis?.url ?? '' }, ['HKEYS', key])
  const ids = (fields as string[]).filter((id) => /^[\w-]{12}$/.test(id))
  t.ok(ids.length > 0 && ids.length <= 3, `${ids.length} entries`)
})

await test('Strangers together have 5,000 signatures checked in a second, whatever their addresses are', async (t) => {
  const senders = new LogoutSenders(await new MemoryStore().openIndex(), ['198.51.100.0/24'])
  t.teardown(() => senders.close())
  const check = (from: string) => senders.check(from, async () => ({ is: 'invalid', cause: undefined }))
  const startedAt = performance.now()
  const outcomes = await Promise.all(
    Array.from({ length: 20_000 }, (_each, at) => check(`10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`)),
  )
  const strangers = outcomes.filter((outcome) => outcome !== undefined).length
  // The burst may last, and meet the end of a second.
  const seconds = 1 + Math.ceil((performance.now() - startedAt) / 1000)
  t.ok(strangers >= 5000 && strangers <= 5000 * seconds, `${strangers} checks in ${seconds} seconds`)
  t.ok(await check('198.51.100.1'), 'the provider is not concerned')
})

await test('Logout tokens of one address that come at the same moment wait for each other: any number of valid ones, ten false ones', async (t) => {
  const senders = new LogoutSenders(await new MemoryStore().openIndex(), [])
  t.teardown(() => senders.close())
  let running = 0
  let most = 0
  const checkAll = async (is: 'valid' | 'invalid'): Promise<number> => {
    const slowly = async () => {
      most = Math.max(most, ++running)
      await new Promise(setImmediate)
      running--
      return is === 'valid' ? ({ is } as const) : ({ is, cause: undefined } as const)
    }
    const outcomes = await Promise.all(Array.from({ length: 500 }, () => senders.check('192.0.2.9', slowly)))
    return outcomes.filter((outcome) => outcome !== undefined).length
  }
  t.equal(await checkAll('valid'), 500)
  const looked = await checkAll('invalid')
  // The burst may meet the end of a second.
  t.ok(looked >= 10 && looked <= 20, `${looked} false ones`)
  t.equal(most, 1)
  t.equal(await senders.check('192.0.2.10', async () => ({ is: 'valid' })).then((outcome) => outcome?.is), 'valid')
})
