import { test } from 'tap'
import { besideKey } from '../../src/store/keys.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { CommandProxy } from '../support/redis/command-proxy.ts'
import { testRedis } from '../support/server/test-server.ts'

const MINUTE_MS = 60_000
const soon = (): number => Date.now() + MINUTE_MS

/** A store, and the keys of which it tells this process. */
async function heard(...[t, url]: Parameters<typeof connectedStore>) {
  const store = await connectedStore(t, url)
  const changed: (string | undefined)[] = []
  store.onChange((key) => changed.push(key))
  return { store, changed }
}

// Redis tells a connection nothing of the changes that it makes itself.
await test('a process hears of the changes that it makes, and of the keys that it finds gone', async (t) => {
  const { store, changed } = await heard(t, (await testRedis(t)).url)
  const tombstone = { key: besideKey('k', 'tombstone'), leftKey: besideKey('k', 'left'), value: 'logout' }
  const changes: Record<string, () => Promise<unknown>> = {
    replace: () => store.replace('k', 'v', 'w', soon()),
    removeIf: () => store.removeIf('k', 'v'),
    remove: () => store.remove('k'),
    bury: () => store.bury('k', { ...tombstone, expiresAt: soon() }),
  }
  for (const [name, change] of Object.entries(changes)) {
    await store.create('k', 'v', soon())
    changed.length = 0
    t.ok(await change(), name)
    t.same(changed, ['k'], name)
    await store.remove('k')
  }
  const reads = {
    read: () => store.read('k'),
    readUntracked: () => store.readUntracked('k'),
    extend: () => store.extend('k', soon()),
  }
  for (const [name, read] of Object.entries(reads)) {
    changed.length = 0
    t.equal(await read(), undefined, name)
    t.same(changed, ['k'], name)
    await store.create('k', 'v', soon())
    changed.length = 0
    t.match(await read(), { value: 'v' }, name)
    t.same(changed, [], `${name}: it is there`)
    await store.remove('k')
  }
})

await test('a process hears of a change that it may have made, since the reply was lost', async (t) => {
  const redis = await testRedis(t)
  const proxy = await CommandProxy.start(t, redis)
  const { store, changed } = await heard(t, proxy.url)
  await store.create('k', 'v', soon())
  const lost = proxy.suffer('gets no reply', (sent) => sent.includes('DEL'))
  await t.rejects(store.remove('k'), StoreUnavailable)
  await lost
  t.ok(changed.includes('k'))
})
