import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { test } from 'tap'
import { sessionKey, besideKey } from '../../src/store/keys.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { askRedis, testCluster } from '../support/redis/topologies.ts'
import { until, untilSlow } from '../support/time/until.ts'

const SLOTS = 16_384
/** How long a user may be locked out. */
const LOCKED_OUT_MS = 10_000

const run = promisify(execFile)
/** Whether the tool has done it. Until all nodes have learnt of the last change from each other, it refuses. */
const manages = (...words: string[]): Promise<boolean> =>
  run('redis-cli', ['--cluster', ...words]).then(
    () => true,
    () => false,
  )

const idOf = async ({ url }: { url: string }): Promise<string> => String(await askRedis({ url }, ['CLUSTER', 'MYID']))

await test('On a Cluster that loses masters by redis-cli --cluster reshard and del-node, nobody is locked out, and every logout is seen', async (t) => {
  const { url, masters } = await testCluster(t)
  const store = await connectedStore(t, url)
  const users = Array.from({ length: 16 }, (_, index) => sessionKey(`user ${index}`))
  for (const user of users) t.ok(await store.create(user, user, Date.now() + 600_000))
  const heard = new Set<string | undefined>()
  store.onChange((key) => heard.add(key))
  store.watchBurials()
  await until(() => store.reportsBurials, 'the store listens')

  // The one at which the store listens is among those that are taken away.
  const all = await masters()
  const subscribers = await Promise.all(all.map((node) => askRedis(node, ['CLIENT', 'LIST', 'TYPE', 'pubsub'])))
  const kept = all.find((_node, index) => subscribers[index] === '')
  if (kept === undefined) throw new Error('there is no such master')
  const others = all.filter((node) => node !== kept)
  const host = `127.0.0.1:${kept.port}`
  const elsewhere = await connectedStore(t, `redis+cluster://${host}`)
  const to = await idOf(kept)
  for (const removed of others) {
    const from = await idOf(removed)
    const whole = ['--cluster-from', from, '--cluster-to', to, '--cluster-slots', String(SLOTS), '--cluster-yes']
    await untilSlow(() => manages('reshard', host, ...whole), 'the tool takes the slots of the master')
    await untilSlow(() => manages('del-node', host, from), 'the tool removes the master')
  }
  const isServed = async (user: string): Promise<boolean> =>
    (await store.read(user).catch(() => undefined))?.value === user
  const areServed = async (): Promise<boolean> => (await Promise.all(users.map(isServed))).every(Boolean)
  await until(areServed, 'nobody is locked out', LOCKED_OUT_MS)
  heard.clear()
  const [user = ''] = users
  t.equal(
    await elsewhere.bury(user, {
      key: besideKey(user, 'tombstone'),
      leftKey: besideKey(user, 'left'),
      value: '',
      expiresAt: Date.now() + 60_000,
    }),
    ` ${user}`,
  )
  // Undefined: any session may have ended, so all are read again.
  await until(() => heard.has(user) || heard.has(undefined), 'a logout elsewhere is noticed', LOCKED_OUT_MS)
})
