import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { parseRedisUrl, redisAccess } from '../../src/config/redis-address.ts'
import { RedisStore } from '../../src/store/redis-store.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { freePort } from '../../sandbox/listening.ts'
import { testCa } from '../support/redis/tls.ts'
import { testRedis } from '../support/server/test-server.ts'

await test('parseRedisUrl reads the address of a single server, of a Cluster or of Sentinels', async (t) => {
  const url = 'rediss://user:pass@host:6380/2'
  t.same(parseRedisUrl(url), { is: 'single', url })
  t.same(parseRedisUrl('redis://us%40er:p%3Aw@a:7000, redis://[::1]'), {
    is: 'cluster',
    nodes: [
      { host: 'a', port: 7000 },
      { host: '::1', port: 6379 },
    ],
    access: { username: 'us@er', password: 'p:w', tls: false },
  })
  t.same(parseRedisUrl('rediss+sentinel://:pa%2Fss@a,b:7001/my-master'), {
    is: 'sentinel',
    nodes: [
      { host: 'a', port: 26_379 },
      { host: 'b', port: 7001 },
    ],
    access: { password: 'pa/ss', tls: true },
    master: 'my-master',
  })
  t.same(parseRedisUrl('rediss+cluster://user:p%3Aw@endpoint'), {
    is: 'cluster',
    nodes: [{ host: 'endpoint', port: 6379 }],
    access: { username: 'user', password: 'p:w', tls: true },
  })
  t.match(parseRedisUrl('redis+cluster://a:7000,b/0'), { nodes: [{ port: 7000 }, { host: 'b', port: 6379 }] })
  const same = 'redis://user:p%23w@a,redis://user:p%23w@b,redis://c'
  t.match(parseRedisUrl(same), { access: { username: 'user', password: 'p#w' } }, 'nodes with the same credentials')
  for (const wrong of [
    '',
    'host:6379',
    'http://host',
    'redis://',
    'redis://a,',
    'redis://a/database',
    'redis://a/1/2',
    'redis://user:%@a',
    'redis://a,rediss://b',
    'redis://a/1,redis://b/1',
    'redis://a,host',
    'redis://:old\nnew@a',
    'redis://a\n1',
    'redis+sentinel://:old\r\nnew@a/name',
    'redis+sentinel://a',
    'redis+sentinel://a/',
    'redis+cluster://',
    'redis+cluster://a/1',
    'redis+cluster://a/name',
    'redis+cluster://a,',
    'redis+cluster://a?db=0',
    'redis+other://a',
    'redis+sentinel:///name',
    'redis+sentinel://a,/name',
    'redis+sentinel://%@a/name',
    'redis://a:6379?db=5',
    'redis://a/1?',
    'redis://user:12#x@a:6379',
    'redis://a#',
    'redis://a?db=5,redis://b',
    'redis+sentinel://a?db=5/name',
    'redis+sentinel://a,b#/name',
    'redis://user:one@a,redis://user:two@b',
    'redis://one:pass@a,redis://two:pass@b',
    'redis://a,redis://:pass@b',
  ]) {
    t.equal(parseRedisUrl(wrong), undefined, wrong)
  }
})

await test('A colon in a password needs no encoding, whichever kind of address it is in', async (t) => {
  const access = { username: 'bff', password: 'ab:cd:ef', tls: false }
  for (const url of [
    'redis://bff:ab:cd:ef@a',
    'redis://bff:ab:cd:ef@a,redis://b',
    'redis+cluster://bff:ab:cd:ef@a',
    'redis+sentinel://bff:ab:cd:ef@a/name',
  ]) {
    t.same(redisAccess(url), access, url)
  }
})

await test('RedisStore connects over TLS with a password and rejects a certificate of an unknown CA', async (t) => {
  const ca = await testCa(t)
  const port = await freePort()
  await testRedis(t, [...ca.serverOptions(port), '--requirepass', 'a:secret'])

  // NODE_EXTRA_CA_CERTS is read once at the start of a process, so this needs a process of its own.
  const store = fileURLToPath(new URL('../../src/store/redis-store.ts', import.meta.url))
  const script = `import { RedisStore } from ${JSON.stringify(store)}
    const url = { current: process.env.URL, onChange: () => () => undefined }
    const store = RedisStore.connect(url, { error() {}, warn() {}, info() {} })
    await store.connected(5000)
    console.log(await store.create('k', 'v', Date.now() + 60000), (await store.read('k')).value)
    await store.close()`
  const env = {
    ...process.env,
    NODE_EXTRA_CA_CERTS: ca.caFile,
    URL: `rediss://:a%3Asecret@localhost:${port}`,
  }
  const args = ['--input-type=module', '-e', script]
  t.equal(execFileSync(process.execPath, args, { env, encoding: 'utf8' }).trim(), 'true v')

  const untrusting = RedisStore.connect(new Changeable(env.URL), {
    error: () => undefined,
    warn: () => undefined,
    info: () => undefined,
  })
  t.teardown(() => untrusting.close())
  await t.rejects(untrusting.read('k'), StoreUnavailable, 'this process does not trust the CA')
})
