import { test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { tryCredentials } from '../../src/store/credentials-trial.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { askRedis, testCluster, testSentinel } from '../support/redis/topologies.ts'
import { untilSlow as until } from '../support/time/until.ts'

const RIGHTS = ['on', '~*', '&*', '+@all']
const KEYS = Array.from({ length: 50 }, (_, index) => `key ${index}`)

for (const [where, start] of [
  ['With Sentinels', testSentinel],
  ['On a Cluster', testCluster],
] as const) {
  await test(`${where}, RedisStore goes on when its user changes, outlives the old user, and follows a failover as the new one`, async (t) => {
    const { url: anonymous, nodes, masters } = await start(t)
    const tell = async (...words: string[]): Promise<void> => {
      for (const node of nodes)
        await until(async () => (await askRedis(node, words)) !== undefined, `a reply to ${words[1]}`)
    }
    const setUser = (name: string): Promise<void> => tell('ACL', 'SETUSER', name, `>${name}-password`, ...RIGHTS)
    const as = (name: string): string => anonymous.replaceAll(/(\/\/)(?=[^/]*:)/g, `//${name}:${name}-password@`)
    await setUser('old')
    const url = new Changeable(as('old'))
    const store = await connectedStore(t, url)
    store.watchBurials()
    const main = await masters()
    // A Cluster does not name a replica before it knows how far that one is, and so is able to confirm.
    const isNamed = async (): Promise<boolean> => {
      const told = await Promise.all(main.map((node) => askRedis(node, ['CLUSTER', 'SLOTS'])))
      return told.every(
        (slots) => slots === undefined || nodes.every(({ port }) => JSON.stringify(slots).includes(`${port}`)),
      )
    }
    await until(isNamed, 'the replicas are named')
    const confirmed = await store.openConfirmed(1)
    const expiresAt = Date.now() + 600_000
    for (const key of KEYS) t.ok(await confirmed.create(key, 'v', expiresAt))

    t.match(await tryCredentials(as('new'), as('old'), 1), /WRONGPASS/)
    for (const master of main) await askRedis(master, ['ACL', 'SETUSER', 'new', '>new-password', ...RIGHTS])
    const warnings: string[] = []
    t.equal(await tryCredentials(as('new'), as('old'), 1, (warning) => warnings.push(warning)), undefined)
    const replicas = nodes.filter(({ port }) => main.every((master) => master.port !== port))
    for (const { port } of replicas)
      t.match(warnings.join('\n'), `the replica 127.0.0.1:${port} refuses the new credentials`)
    t.equal(warnings.length, replicas.length)
    await setUser('new')
    t.equal(await tryCredentials(as('new'), as('old'), 1), undefined)
    const users = async (): Promise<Set<string>> => {
      const lists = await Promise.all(nodes.map((node) => askRedis(node, ['CLIENT', 'LIST'])))
      const found = lists.flatMap((list) => [...String(list).matchAll(/ user=(\w+)/g)].map(([, name = '']) => name))
      return new Set(found.filter((name) => name !== 'default'))
    }
    const failures: unknown[] = []
    const over = new AbortController()
    const load = (async () => {
      while (!over.signal.aborted) {
        for (const key of KEYS) {
          await store.read(key).catch((error: unknown) => failures.push(error))
          await confirmed.replace(key, 'v', 'v', expiresAt).catch((error: unknown) => failures.push(error))
        }
      }
    })()
    url.change(as('new'))
    await until(async () => {
      const present = await users()
      return present.size === 1 && present.has('new')
    }, 'all connections have the new user')
    await tell('ACL', 'DELUSER', 'old')
    for (let round = 0; round < 2; round++) for (const key of KEYS) t.equal((await store.read(key))?.value, 'v')
    over.abort()
    await load
    t.same(failures, [], 'no command has failed')

    const [lost] = await masters()
    await lost?.close()
    const readAll = () => Promise.all(KEYS.map((key) => store.read(key).catch(() => undefined)))
    await until(
      async () => (await readAll()).every((found) => found?.value === 'v'),
      'all keys are there after a failover',
    )
  })
}
