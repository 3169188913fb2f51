import { setImmediate as turn } from 'node:timers/promises'
import { ErrorReply } from '@redis/client'
import { test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { names } from '../../src/peers/names.ts'
import { parseRedisUrl, redisAccess } from '../../src/config/redis-address.ts'
import { ClusterLink } from '../../src/store/links/cluster-link.ts'
import { askSentinel, linkTo, replicasOf } from '../../src/store/links/link-to.ts'
import { MasterLink } from '../../src/store/links/master-link.ts'
import type { LinkEvents } from '../../src/store/links/redis-link.ts'
import { master, serversOf, type Server } from '../support/redis/servers-alone.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until } from '../support/time/until.ts'

const EVENTS: LinkEvents = {
  opened: async () => undefined,
  ask: async () => undefined,
  unreached: () => undefined,
  up: () => undefined,
  lost: () => undefined,
  changed: () => undefined,
}
const QUIET = { warn: () => undefined }
const named = (port: number): Server => master({ SENTINEL: ['127.0.0.1', `${port}`] })
const WRONG = new ErrorReply('WRONGPASS invalid')

await test('an address leads to one server, to the master that Sentinels name, or to a Cluster', async (t) => {
  const { open } = serversOf(t, { 1: named(7001), 7000: master(), 7001: master() })
  for (const [address, port, name] of [
    ['redis://u:p@127.0.0.1:7000/2', 7000, 'master'],
    ['redis+sentinel://u:p@127.0.0.1:1/bff', 7001, '127.0.0.1:7001'],
  ] as const) {
    const link = linkTo(new Changeable(address), QUIET)
    t.type(link, MasterLink)
    await link.open(EVENTS)
    const server = link.masterOf('any')
    t.equal(server.name, name)
    t.equal(server.owns('any'), true)
    t.match(open().at(-1), { port })
    t.match(server.options.credentialsProvider, { access: { username: 'u', password: 'p' } })
    if (port === 7000)
      t.equal(server.options.url, 'redis://127.0.0.1:7000/2', 'without the credentials, which may change')
    await link.close()
  }
  t.type(linkTo(new Changeable('redis+cluster://127.0.0.1:7000'), QUIET), ClusterLink)
  t.throws(() => linkTo(new Changeable('http://host'), QUIET), new TypeError('not the address of a Redis'))
})

await test('a server that refuses new credentials is named in the log, and a connection that is lost is not', async (t) => {
  const { open } = serversOf(t, { 7000: master() })
  const log: unknown[] = []
  const url = new Changeable('redis://u:p@127.0.0.1:7000')
  const link = linkTo(url, { warn: (...args) => log.push(args) })
  await link.open(EVENTS)
  t.teardown(() => link.close())
  const { connection } = open()[0] ?? { connection: undefined }
  const failures = [new Error('lost'), WRONG]
  t.intercept(connection as object as { authenticate: unknown }, 'authenticate', {
    value: () => Promise.reject(failures.shift()),
  })
  url.change('redis://u:q@127.0.0.1:7000')
  await until(() => failures.length === 1)
  t.same(log, [])
  url.change('redis://u:r@127.0.0.1:7000')
  await until(() => log.length > 0)
  t.same(log, [
    [
      { code: 'WRONGPASS', server: '127.0.0.1:7000' },
      'Redis refuses the new credentials: a connection keeps the former ones',
    ],
  ])
})

await test('the Sentinel that replied last is asked first, unless nobody could use what it named', async (t) => {
  const url = 'redis+sentinel://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3/bff'
  const seconds = new HeldTimers(t, 'setTimeout', 1000)
  const { servers, sent } = serversOf(t, { 2: named(7000), 3: named(7001), 7001: master() })
  const link = linkTo(new Changeable(url), QUIET)
  let losses = 0
  const opening = link.open({ ...EVENTS, lost: () => void losses++ })
  t.teardown(() => link.close())
  await opening
  const asked = () =>
    sent()
      .filter((each) => /^\d (SENTINEL|connect)/.test(each))
      .map((each) => each.slice(0, 3))
  t.same(asked(), ['2 c', '2 S', '3 c', '3 S'], 'what the second one named was in vain')
  t.equal(losses, 1)
  for (let count = 0; count < 2; count++) {
    seconds.run()
    for (let turns = 0; turns < 10; turns++) await turn()
    t.same(asked(), ['3 c', '3 S'], 'while it is of use, it alone is asked')
  }
  servers[3] = undefined
  servers[1] = named(7001)
  link.abandon('it is a slave')
  await until(() => losses === 2 && link.masterNames().size > 0)
  await until(() => asked().includes('1 S'), 'each is asked until one tells')
})

await test('each Sentinel is asked once, however often what one named was of no use', async (t) => {
  // The pauses are then as short as they may be.
  t.intercept(Math, 'random', { value: () => 1 })
  const rounds: string[][] = []
  const { servers, sent } = serversOf(t, { 1: named(7000), 2: named(7000) })
  const link = linkTo(new Changeable('redis+sentinel://127.0.0.1:1,127.0.0.1:2/bff'), QUIET)
  t.teardown(() => link.close())
  const lost = (): void => void rounds.push(sent().filter((each) => each.includes('SENTINEL')))
  void link.open({ ...EVENTS, lost })
  await until(() => rounds.length >= 2)
  servers[1] = servers[2] = master({ SENTINEL: null })
  const before = rounds.length
  await until(() => rounds.length >= before + 2)
  const last = rounds.at(-1) ?? []
  t.same([last.length, new Set(last).size], [2, 2])
})

await test('a Sentinel is asked with the credentials, or else without any, and a server that names none is left out', async (t) => {
  const given: unknown[] = []
  const { servers, sent } = serversOf(t, {
    1: (words, { options }) => {
      if (words[0] !== 'connect') return ['10.0.0.1', '7000']
      const { password, socket } = options as { password?: string; socket: { tls?: boolean } }
      given.push([password, socket.tls])
      return password === undefined ? undefined : WRONG
    },
  })
  const peers: string[] = []
  const lookup = names.for('other')
  t.intercept(names, 'for', { value: (peer: string) => (peers.push(peer), lookup) })
  const sentinel = { host: '127.0.0.1', port: 1 }
  const ask = (password?: string, tls = false) => askSentinel(sentinel, { ...(password && { password }), tls }, 'bff')
  t.same(await ask(), { host: '10.0.0.1', port: 7000 })
  t.same(given.splice(0), [[undefined, undefined]])
  t.ok(peers.includes('other'), 'its name may not keep that of the master waiting')
  t.same(await ask('secret'), { host: '10.0.0.1', port: 7000 })
  t.same(given.splice(0), [
    ['secret', undefined],
    [undefined, undefined],
  ])
  t.same(await ask('secret', true), { host: '10.0.0.1', port: 7000 })
  t.same(given, [
    ['secret', true],
    [undefined, true],
  ])
  t.ok(sent().includes('1 SENTINEL GET-MASTER-ADDR-BY-NAME bff'))
  servers[1] = master({ SENTINEL: null })
  sent()
  t.equal(await ask(), undefined)
  t.equal(sent().filter((each) => each.includes('SENTINEL')).length, 1, 'there is no other way to ask')
  given.length = 0
  servers[1] = undefined
  t.equal(await ask('secret'), undefined)
})

await test('a Sentinel that does not reply is asked once a round, with the new password and without a former one', async (t) => {
  const { servers, sent } = serversOf(t, { 2: named(7000), 7000: master() })
  const url = new Changeable('redis+sentinel://:old@127.0.0.1:1,127.0.0.1:2/bff')
  const link = linkTo(url, QUIET)
  t.teardown(() => link.close())
  url.change('redis+sentinel://:new@127.0.0.1:1,127.0.0.1:2/bff')
  servers[1] = master({ connect: Object.assign(new Error('silence'), { code: 'ETIMEDOUT' }) })
  await link.open(EVENTS)
  t.same(
    sent().filter((each) => each.endsWith('connect')),
    ['1 connect', '2 connect', '7000 connect'],
  )
})

const knows =
  (password: string): Server =>
  (words, { options }) => {
    if (words[0] !== 'connect') return ['127.0.0.1', '7000']
    return (options as { password?: string }).password === password ? undefined : WRONG
  }

await test('a Sentinel that knows only the former credentials is asked with them, too', async (t) => {
  const url = new Changeable('redis+sentinel://u:old@127.0.0.1:1/bff')
  serversOf(t, { 1: knows('old'), 7000: master() })
  const link = linkTo(url, QUIET)
  url.change('redis+sentinel://u:new@127.0.0.1:1/bff')
  await link.open(EVENTS)
  t.equal(link.masterOf('k').name, '127.0.0.1:7000')
  await link.close()
})

const of = (url: string) => {
  const address = parseRedisUrl(url)
  if (address === undefined) throw new Error(url)
  return replicasOf(address, redisAccess(url))
}

await test('replicas are those that a node of a Cluster, or a master that a Sentinel names, tells', async (t) => {
  const { servers, sent } = serversOf(t, {
    1: named(7000),
    7000: master({
      ROLE: [
        'master',
        0,
        [
          ['10.0.0.2', '7002'],
          ['10.0.0.3', '7003'],
        ],
      ],
    }),
    7001: master({ CLUSTER: [[0, 16_383, ['127.0.0.1', 7001], ['10.0.0.4', 7004]]] }),
  })
  t.same(await of('redis://127.0.0.1:7000'), [])
  t.same(sent(), [], 'a server alone is not asked')
  t.same(await of('redis+sentinel://127.0.0.1:2,127.0.0.1:1/bff'), [
    { host: '10.0.0.2', port: 7002 },
    { host: '10.0.0.3', port: 7003 },
  ])
  t.same(await of('redis+cluster://127.0.0.1:7001'), [{ host: '10.0.0.4', port: 7004 }])
  servers[7002] = master({ CLUSTER: [] })
  t.same(await of('redis+cluster://127.0.0.1:7002,127.0.0.1:7001'), [{ host: '10.0.0.4', port: 7004 }])
  t.same(await of('redis+cluster://127.0.0.1:7002'), [])
  t.same(await of('redis+sentinel://127.0.0.1:2/bff'), [])
})
