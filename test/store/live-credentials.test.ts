import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { test, type Test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { newConnection } from '../../src/store/links/connection.ts'
import { budgetKey } from '../../src/store/keys.ts'
import { tryCredentials } from '../../src/store/credentials-trial.ts'
import { createClient } from '../support/redis/client.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { testRedis } from '../support/server/test-server.ts'
import { until } from '../support/time/until.ts'

const RIGHTS = ['on', '~*', '&*', '+@all']

/** A Redis with the users old and new, an administrator, and a store of the user old. */
async function worldWithUsers(t: Test) {
  const redis = await testRedis(t)
  const admin = createClient({ url: redis.url })
  await admin.connect()
  t.teardown(() => admin.destroy())
  const setUser = (...words: string[]): Promise<unknown> => admin.sendCommand(['ACL', 'SETUSER', ...words])
  await setUser('old', '>old-password', ...RIGHTS)
  await setUser('new', '>new:password', ...RIGHTS)
  const as = (credentials: string): string => redis.url.replace('//', `//${credentials}@`)
  const url = new Changeable(as('old:old-password'))
  const warnings: object[] = []
  const store = await connectedStore(t, url, { warn: (details) => void warnings.push(details) })
  /** The users of all connections but the administrator's. */
  const users = async (): Promise<string[]> => {
    const list = (await admin.sendCommand(['CLIENT', 'LIST'])) as unknown as string
    const names = [...list.matchAll(/ user=(\w+)/g)].map(([, name = '']) => name)
    return names.filter((name) => name !== 'default').toSorted()
  }
  return { redis, admin, setUser, as, url, store, users, warnings }
}

await test('RedisStore goes on over the same connections when its user changes, and outlives the old user', async (t) => {
  const { admin, as, url, store, users } = await worldWithUsers(t)
  const confirmed = await store.openConfirmed(0)
  await confirmed.create('confirmed', 'v', Date.now() + 60_000)
  const news: (string | undefined)[] = []
  let documentNews = 0
  const document = await store.openRefusals('test', () => documentNews++)
  await until(async () => (await users()).length >= 3, 'the link, a subscriber and the confirmed writes are connected')
  const before = (await users()).length
  await store.create('watched', 'one', Date.now() + 60_000)
  await store.read('watched')
  store.onChange((key) => void news.push(key))

  let failed = 0
  const over = new AbortController()
  const load = (async () => {
    while (!over.signal.aborted) {
      await store.read('watched').catch(() => failed++)
      await confirmed.replace('confirmed', 'v', 'v', Date.now() + 60_000).catch(() => failed++)
    }
  })()
  url.change(as('new:new%3Apassword'))
  await until(
    async () => new Set(await users()).size === 1 && (await users())[0] === 'new',
    'all connections have the new user',
  )
  t.equal((await users()).length, before, 'no connection was added')
  await admin.sendCommand(['ACL', 'DELUSER', 'old'])
  await admin.set('watched', 'two', { PX: 60_000 })
  await until(() => news.includes('watched'), 'Redis still reports changes')
  const heard = documentNews
  await admin.publish(budgetKey('budget-news', 'test'), 'changed other')
  await until(() => documentNews > heard, 'the subscription is still in place')
  over.abort()
  await load
  t.equal(failed, 0, 'no command has failed')
  t.notOk(news.includes(undefined), 'the link was never unhealthy')
  document?.close()
})

await test('RedisStore reports each open connection that refuses new credentials, and goes on with the old ones', async (t) => {
  const { redis, as, url, store, users, warnings } = await worldWithUsers(t)
  await until(async () => (await users()).length > 0, 'the link is connected')
  url.change(as('new:another'))
  // On a slow machine a connection may have been silent for too long before.
  const refusal = () => warnings.find((each) => 'code' in each)
  await until(() => refusal() !== undefined, 'the refusal is reported')
  t.same(refusal(), { code: 'WRONGPASS', server: `127.0.0.1:${redis.port}` })
  t.equal(await store.create('key', 'value', Date.now() + 60_000), true)
  t.same(new Set(await users()), new Set(['old']))
})

await test('RedisStore gets the reply of each command to that command while Redis refuses new credentials', async (t) => {
  const { as, url, store, users, warnings } = await worldWithUsers(t)
  const confirmed = await store.openConfirmed(0)
  const keys = Array.from({ length: 50 }, (_, index) => `key ${index}`)
  for (const key of keys) await confirmed.create(key, key, Date.now() + 60_000)
  const wrong: unknown[] = []
  const over = new AbortController()
  const reads = async (key: string): Promise<void> => {
    while (!over.signal.aborted) {
      const found = await store.read(key).catch((error: unknown) => ({ value: error }))
      if (found?.value !== key) wrong.push(found)
      const isReplaced = await confirmed.replace(key, key, key, Date.now() + 60_000).catch((error: unknown) => error)
      if (isReplaced !== true) wrong.push(isReplaced)
    }
  }
  const load = keys.map(reads)
  for (const password of ['another', 'a third', 'a fourth']) {
    const before = warnings.length
    url.change(as(`new:${encodeURIComponent(password)}`))
    await until(() => warnings.length >= before + 2, 'the refusals of both connections are reported')
  }
  over.abort()
  await Promise.all(load)
  t.same(wrong.slice(0, 3), [])
  t.same(new Set(await users()), new Set(['old']))
})

await test('RedisStore reconnects with the new password after CLIENT KILL, when Redis has forgotten the old one', async (t) => {
  const redis = await testRedis(t, ['--requirepass', 'old'])
  const as = (password: string): string => redis.url.replace('//', `//:${password}@`)
  const url = new Changeable(as('old'))
  const store = await connectedStore(t, url)
  await store.create('key', 'kept', Date.now() + 60_000)
  const admin = createClient({ url: as('old') })
  await admin.connect()
  t.teardown(() => admin.destroy())
  await admin.sendCommand(['ACL', 'SETUSER', 'default', '>new'])
  url.change(as('new'))
  t.equal((await store.read('key'))?.value, 'kept')
  await admin.sendCommand(['ACL', 'SETUSER', 'default', '<old'])
  await admin.sendCommand(['CLIENT', 'KILL', 'USER', 'default', 'SKIPME', 'yes'])
  const read = async (): Promise<unknown> => (await store.read('key').catch(() => undefined))?.value
  await until(async () => (await read()) === 'kept', 'the store is connected again')
})

await test('RedisStore reconnects with the former credentials while Redis refuses the new ones, and with the new ones once Redis knows them', async (t) => {
  const { admin, setUser, as, url, store, users } = await worldWithUsers(t)
  await store.create('key', 'kept', Date.now() + 60_000)
  await setUser('new', 'resetpass', '>another')
  url.change(as('new:new%3Apassword'))
  const isThere = async (): Promise<boolean> => (await store.read('key').catch(() => undefined))?.value === 'kept'
  const reconnected = async (user: string): Promise<void> => {
    await admin.sendCommand(['CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'])
    await until(async () => (await isThere()) && (await users()).includes(user), `the store is there as ${user}`)
  }
  await reconnected('old')
  await reconnected('old')
  await setUser('new', '>new:password')
  await reconnected('new')
  await setUser('new', 'resetpass')
  await reconnected('old')
})

await test('RedisStore replaces a connection on which replies are pending when the credentials change', async (t) => {
  const { admin, as, url, store, users } = await worldWithUsers(t)
  await store.create('key', 'kept', Date.now() + 60_000)
  await admin.sendCommand(['CLIENT', 'PAUSE', '1000', 'ALL'])
  url.change(as('new:new%3Apassword'))
  await until(async () => {
    const names = await users()
    return names.length > 0 && names.every((name) => name === 'new')
  }, 'the connection is another one')
  await until(
    async () => (await store.read('key').catch(() => undefined))?.value === 'kept',
    'the store is there again',
  )
})

for (const [what, reply] of [
  ['gets no reply', ''],
  ['leaves a reply behind', '+OK\r\n'],
] as const) {
  await test(`A connection whose AUTH ${what} is closed before another command gets a wrong one`, async (t) => {
    const server = createServer((socket) => {
      let left = ''
      socket
        .on('error', () => undefined)
        .on('data', (data) => {
          for (const [, name = '', word = ''] of data
            .toString()
            .matchAll(/\*\d+\r\n\$\d+\r\n(\w+)\r\n(?:\$\d+\r\n(.*?)\r\n)?/g)) {
            if (name === 'HELLO') socket.write('%1\r\n$5\r\nproto\r\n:3\r\n')
            else if (name === 'AUTH') socket.write((left = reply))
            else {
              socket.write(`${left}$${word.length}\r\n${word}\r\n`)
              left = ''
            }
          }
        })
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    t.teardown(() => server.close())
    const { port } = server.address() as AddressInfo
    const connection = newConnection({ socket: { host: '127.0.0.1', port, reconnectStrategy: false } })
    connection.on('error', () => undefined)
    await connection.connect()
    t.equal(await connection.get('a'), 'a')
    const authenticated = connection.authenticate({ username: 'new', password: 'other', tls: false })
    const held = [connection.get('b'), connection.get('c')]
    await t.rejects(authenticated)
    for (const reply of held) await t.rejects(reply)
    t.notOk(connection.isOpen)
  })
}

await test('New credentials of Redis are refused if they are wrong, or have fewer rights than the present ones', async (t) => {
  const { setUser, as } = await worldWithUsers(t)
  const present = as('old:old-password')
  const tried = (credentials: string): Promise<string | undefined> => tryCredentials(as(credentials), present, 0)
  t.equal(await tried('new:new%3Apassword'), undefined)
  t.match(await tried('new:another'), /WRONGPASS/)
  await setUser('narrow', '>narrow', ...RIGHTS, '-eval')
  t.match(await tried('narrow:narrow'), /no right to EVAL/)
  await setUser('elsewhere', '>elsewhere', ...RIGHTS, 'resetkeys', '~other:*')
  t.match(await tried('elsewhere:elsewhere'), /no right to keys that begin with bff:1:/)
  await setUser('old', 'resetpass', '>other')
  t.equal(await tried('new:new%3Apassword'), undefined, 'although the present ones do not work any more')
  t.match(await tryCredentials('redis://:a@127.0.0.1:1', 'redis://:b@127.0.0.1:1', 0), /cannot be used/)
})
