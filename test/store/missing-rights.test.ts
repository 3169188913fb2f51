import { randomUUID } from 'node:crypto'
import { test, type Test } from 'tap'
import type { RedisProcess } from '../../sandbox/redis-process.ts'
import { RedisStore } from '../../src/store/redis-store.ts'
import { Changeable } from '../../src/config/changing.ts'
import { QUIET } from '../support/redis/connected-store.ts'
import { askRedis } from '../support/redis/topologies.ts'
import { until } from '../support/time/until.ts'
import { testRedis } from '../support/server/test-server.ts'

/** A store of a user with these rights, and the way to change them. */
async function poorStore(t: Test, rights: string, redis?: RedisProcess) {
  const server = redis ?? (await testRedis(t))
  const user = `poor${randomUUID()}`
  const give = (more: string) => askRedis(server, ['ACL', 'SETUSER', user, ...more.split(' ')])
  await give(`on >secret ~bff:1:* ~{bff:1:* &* ${rights}`)
  const store = RedisStore.connect(new Changeable(server.url.replace('redis://', `redis://${user}:secret@`)), QUIET)
  t.teardown(() => store.close())
  return { store, give }
}

const why = (store: RedisStore): string => store.condition().why.join(' ')

await test('a store is unavailable, and says why, while the user lacks a right that every session needs', async (t) => {
  const redis = await testRedis(t)
  const lacks = async (name: string): Promise<void> => {
    const { store, give } = await poorStore(t, '+@all', redis)
    await until(() => store.unavailableSince() === undefined)
    await give(`-${name}`)
    await until(() => store.unavailableSince() !== undefined, `${name} is missed`)
    t.match(why(store), name === 'eval' ? /NOPERM/ : new RegExp(`NOPERM: ${name.toUpperCase()}`))
    t.match(why(store), /docs\/operating\/redis\.md/)
    t.equal(store.condition().share, 0)
    await give(`+${name}`)
    await until(() => store.unavailableSince() === undefined, `${name} is there again`)
    t.same([why(store), store.condition().share], ['', 1])
  }
  await Promise.all(['get', 'mget', 'set', 'del', 'pexpiretime', 'pexpireat', 'eval', 'time'].map(lacks))
})

for (const name of ['incrby', 'pexpireat']) {
  await test(`a store is not available before the user has the right to ${name}`, async (t) => {
    const { store, give } = await poorStore(t, `+@all -${name}`)
    await until(() => why(store).startsWith(`NOPERM: ${name.toUpperCase()}.`))
    await until(() => store.warnings().length > 0)
    t.equal(store.unavailableSince(), -Infinity)
    await give(`+${name}`)
    await until(() => store.unavailableSince() === undefined)
  })
}

await test('a store needs what the index of sessions needs from when it is open', async (t) => {
  const { store } = await poorStore(t, '+@all -hset -hget -hgetall -hdel')
  await until(() => store.availableForMs('k') > 1500)
  await store.openIndex()
  await until(() => store.unavailableSince() !== undefined)
  t.match(why(store), /NOPERM: HSET, HGET, HGETALL, HDEL/)
})

for (const [what, args, cause] of [
  ['whose server has no CLIENT TRACKING for the user', '-client|tracking', /^NOTRACKING\. /],
  ['whose keys the user may only read', 'resetkeys %R~*', /^NOPERM\. /],
] as const) {
  await test(`a store ${what} never becomes available, and says why for as long as it lasts`, async (t) => {
    const { store, give } = await poorStore(t, `+@all ${args}`)
    await until(() => cause.test(why(store)))
    t.equal(store.unavailableSince(), -Infinity, 'it was never reached, so no grace applies')
    await give('+client|tracking ~*')
    await until(() => store.unavailableSince() === undefined)
  })
}

await test('a store serves a user that may not ask INFO, ROLE, CONFIG or CLIENT CACHING', async (t) => {
  const { store } = await poorStore(t, '+@all -@dangerous -client|caching')
  await store.connected(10_000)
  t.equal(store.unavailableSince(), undefined)
  t.ok(await store.create('bff:1:one', 'v', Date.now() + 60_000))
  t.match(await store.read('bff:1:one'), { value: 'v' })
})

await test('a counter that begins without the right to PEXPIRE ends all the same', async (t) => {
  const { store } = await poorStore(t, '+@all -pexpire')
  await store.connected(10_000)
  for (const count of [2, 4]) t.equal(await store.count('bff:1:starts:one', 2, 300), count)
  await until(async () => (await store.count('bff:1:starts:one', 1, 300)) === 1, 'it is forgotten')
})
