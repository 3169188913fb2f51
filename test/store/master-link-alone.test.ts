import { ErrorReply } from '@redis/client'
import { setImmediate as turn } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { MEMBER_ADVICE } from '../../src/store/links/cluster-slots.ts'
import { MasterLink } from '../../src/store/links/master-link.ts'
import type { MasterServer } from '../../src/store/links/redis-link.ts'
import { master, serversOf, slotsOf, type Server } from '../support/redis/servers-alone.ts'
import { clockAhead } from '../support/time/clock-ahead.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until } from '../support/time/until.ts'

const at = (port: number): MasterServer => ({
  name: `${port}`,
  options: { socket: { host: '127.0.0.1', port } },
  owns: () => true,
})

/** The link to the master that a test names, and what it says. */
function linkOf(t: Test, servers: Record<number, Server | undefined>) {
  const seconds = new HeldTimers(t, 'setTimeout', 1000)
  const fleet = serversOf(t, servers)
  const log: unknown[] = []
  const world = {
    found: at(7000) as MasterServer | undefined,
    serves: async (): Promise<void> => undefined,
    vain: [] as (boolean | undefined)[],
    late: undefined as Promise<MasterServer> | undefined,
  }
  const link = new MasterLink(async (isInVain) => (world.vain.push(isInVain), world.late ?? world.found))
  t.teardown(() => link.close())
  const opened = link.open({
    opened: async ({ name }) => (log.push(`opened ${name}`), world.serves()),
    ask: async ({ name }) => void log.push(`ask ${name}`),
    unreached: () => undefined,
    up: () => void log.push('up'),
    lost: (reason) => void log.push(`lost: ${reason}`),
    changed: (key) => void log.push(['changed', key]),
  })
  return { ...fleet, link, opened, world, seconds, log, logged: () => log.splice(0) }
}

await test('the link is up once its server is a master, serves, and tracks what is read over this connection', async (t) => {
  const { link, opened, open, sent, logged } = linkOf(t, { 7000: master() })
  t.equal(link.tracks, true)
  t.throws(() => link.commands(), { name: 'Unsent', cause: { message: 'there is no master' } })
  t.throws(() => link.untracked(), { name: 'Unsent' })
  t.throws(() => link.masterOf(), { name: 'Unsent', cause: { message: 'there is no master' } })
  t.same([[...link.masterNames()], link.anyServer()], [[], undefined])
  link.probe()
  link.abandon('nothing')
  await opened
  t.same(logged(), ['opened 7000', 'up'])
  t.same(sent(), ['7000 connect', '7000 ROLE', '7000 INFO cluster', '7000 CLIENT TRACKING ON OPTOUT NOLOOP'])
  const connection = open()[0]?.connection
  t.equal(link.commands(), connection)
  t.equal(connection?.options.emitInvalidate, true)
  t.same(sent(), [])
  t.equal(link.untracked(), connection)
  t.same(sent(), ['7000 CLIENT CACHING NO'])
  t.same([link.masterOf().name, link.anyServer()?.name, [...link.masterNames()]], ['7000', '7000', ['7000']])
  t.same(await link.askMasters((wire) => wire.ping()), ['PONG'])
  t.same(await link.askMasters(() => Promise.reject(new Error('lost'))), [undefined])
  t.same(sent(), ['7000 CLIENT CACHING NO', '7000 PING', '7000 CLIENT CACHING NO'])
  link.probe()
  await turn()
  t.same(logged(), ['ask 7000'])
})

await test('changes that the server reports are told, by key if it names one', async (t) => {
  const { opened, open, logged } = linkOf(t, { 7000: master() })
  await opened
  logged()
  for (const key of ['text', Buffer.from('bytes'), null]) open()[0]?.connection.emit('invalidate', key)
  t.same(logged(), [
    ['changed', 'text'],
    ['changed', 'bytes'],
    ['changed', undefined],
  ])
})

await test('a server that may not be asked for its role or its Cluster is used, and a refusal of CLIENT CACHING matters to nobody', async (t) => {
  const no = new ErrorReply('NOPERM no')
  const { link, opened } = linkOf(t, { 7000: master({ ROLE: no, INFO: no, 'CLIENT CACHING': no }) })
  await opened
  t.equal(await link.untracked().ping(), 'PONG')
})

await test('a server is not used where it is no master, is one of several of a Cluster, does not track, or does not serve', async (t) => {
  const no = new ErrorReply('NOPERM no')
  const member = { 'INFO cluster': 'cluster_enabled:1', CLUSTER: slotsOf(7000, 7001) }
  for (const [changes, reason, serves] of [
    [{ ROLE: ['slave', 'host', 1] }, 'it is a slave', async () => Promise.reject(new Error('less important'))],
    [member, `it is one of 2 masters of a Cluster. ${MEMBER_ADVICE}`],
    [{ 'CLIENT TRACKING': no }, 'NOPERM'],
    [{ connect: no, 'CLIENT TRACKING': no }, 'NOPERM'],
    [{}, 'OOM', async () => Promise.reject(new ErrorReply('OOM full'))],
  ] as const) {
    const { log, world } = linkOf(t, { 7000: master(changes) })
    if (serves !== undefined) world.serves = serves
    await until(() => log.some((entry) => String(entry).startsWith('lost')))
    t.equal(log.at(-1), `lost: ${reason}`)
    t.notOk(log.includes('up'))
  }
})

await test('the only master of a Cluster is used as if it were alone', async (t) => {
  const { opened, logged } = linkOf(t, {
    7000: master({ 'INFO cluster': 'cluster_enabled:1', CLUSTER: slotsOf(7000) }),
  })
  await opened
  t.same(logged(), ['opened 7000', 'up'])
})

await test('that it is the tracking which a server refuses is found out where the library does not say it', async (t) => {
  for (const code of ['NOPERM', 'ERR', 'LOADING']) {
    for (const [answer, isTracking] of [
      [new ErrorReply('NOPERM no'), true],
      [new Error('lost'), false],
      ['OK', false],
    ] as const) {
      // The library asks for tracking while it connects.
      const isTracked = (_words: unknown, { options }: { options: { emitInvalidate?: boolean } }) =>
        options.emitInvalidate === true ? new ErrorReply(`${code} no`) : undefined
      const { log, sent } = linkOf(t, {
        7000: master({ connect: isTracked, 'CLIENT TRACKING': answer }),
      })
      await until(() => log.length > 0)
      const isAsked = code !== 'LOADING'
      t.equal(log[0], `lost: ${isAsked && isTracking ? 'NOTRACKING' : code}`, `${code}, ${String(answer)}`)
      t.equal(sent().includes('7000 CLIENT TRACKING ON'), isAsked)
    }
  }
  const { log } = linkOf(t, { 7000: master({ connect: new ErrorReply('NOPERM no') }) })
  await until(() => log.length > 0)
  t.equal(log[0], 'lost: NOPERM', 'where it cannot be found out')
})

await test('a master that is found again and again without being of use was found in vain', async (t) => {
  const { link, world, log, servers, opened, seconds } = linkOf(t, {})
  await until(() => log.length >= 2)
  t.same(log.splice(0).slice(0, 2), ['lost: ECONNREFUSED', 'lost: ECONNREFUSED'])
  seconds.run()
  const vain = world.vain.splice(0)
  t.same(vain.slice(0, 2), [false, true])
  t.notOk(vain.includes(undefined), 'nobody looks for another one besides')
  world.found = undefined
  await until(() => log.includes('lost: no Sentinel names a master'))
  world.found = at(7000)
  servers[7000] = master()
  await opened
  world.vain.length = 0
  link.abandon('it is a slave')
  t.throws(() => link.masterOf(), { name: 'Unsent', cause: { message: 'there is no master' } })
  await until(() => world.vain.length > 0)
  t.same(world.vain, [false], 'the one that was found last was of use')
})

await test('every second the link looks whether the master is still the same, and leaves one that was replaced', async (t) => {
  const { link, opened, world, seconds, sent, logged } = linkOf(t, { 7000: master(), 7001: master() })
  await opened
  logged()
  world.vain.length = 0
  const pass = async (): Promise<void> => {
    seconds.run()
    for (let turns = 0; turns < 10; turns++) await turn()
  }
  await pass()
  t.same(world.vain, [undefined])
  t.same(logged(), ['ask 7000'], 'it is still the same')
  world.found = undefined
  await pass()
  t.same(logged(), ['ask 7000'], 'that none is named changes nothing')
  world.found = at(7001)
  sent()
  await pass()
  t.match(logged(), ['ask 7000', 'lost: the master was replaced'])
  t.ok(sent().includes('7000 closed'))
  await until(() => link.anyServer()?.name === '7001')
  await until(() => {
    try {
      return link.masterOf().name === '7001'
    } catch {
      return false
    }
  })
})

await test('an answer that comes after another master was found leaves that one alone', async (t) => {
  const { link, opened, world, seconds, open, logged } = linkOf(t, { 7000: master(), 7001: master() })
  await opened
  const late = Promise.withResolvers<MasterServer>()
  world.late = late.promise
  seconds.run()
  await turn()
  world.late = undefined
  world.found = at(7001)
  link.abandon('it is a slave')
  await until(() => open()[0]?.port === 7001)
  logged()
  late.resolve(at(7002))
  for (let turns = 0; turns < 10; turns++) await turn()
  t.same([logged(), link.masterOf().name], [[], '7001'])
})

await test('a connection that is being opened is not abandoned at once, since nothing is known of its server', async (t) => {
  const ahead = clockAhead(t)
  const tries: PromiseWithResolvers<void>[] = []
  const connect = (): Promise<void> => {
    const attempt = Promise.withResolvers<void>()
    tries.push(attempt)
    return attempt.promise
  }
  const { link, opened, logged } = linkOf(t, { 7000: master({ connect }) })
  await until(() => tries.length === 1)
  ahead(500)
  link.abandon('silence')
  t.same(logged(), [])
  ahead(1000)
  link.abandon('silence')
  t.same(logged(), ['lost: silence'])
  await until(() => tries.length === 2)
  ahead(500)
  link.abandon('silence')
  tries[1]?.resolve()
  await opened
  t.same(logged(), ['opened 7000', 'up'])
  link.abandon('silence')
  t.same(logged(), ['lost: silence'])
})

await test('a link that is closed lets the replies come, looks for nothing, and is open to nobody', async (t) => {
  const { link, opened, world, seconds, sent, logged } = linkOf(t, { 7000: master() })
  await opened
  logged()
  world.vain.length = 0
  sent()
  await link.close()
  t.same(sent(), ['7000 closed softly'])
  seconds.run()
  await turn()
  t.same([world.vain, logged(), seconds.size], [[], [], 0])
  t.throws(() => link.commands())
})

await test('a link that is not open yet has no master, and can be closed', async (t) => {
  const link = new MasterLink(async () => at(7000))
  link.probe()
  link.abandon('nothing')
  t.throws(() => link.commands(), { name: 'Unsent' })
  t.throws(() => link.masterOf(), { name: 'Unsent' })
  await link.close()
})

await test('who waits for a link that is closed before it is up waits no longer', async (t) => {
  const { link, opened } = linkOf(t, {})
  await link.close()
  await opened
  t.pass()
})
