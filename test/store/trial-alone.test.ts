import { ErrorReply } from '@redis/client'
import { test, type Test } from 'tap'
import { tryCredentials } from '../../src/store/credentials-trial.ts'
import { master, serversOf, slotsOf, type Server } from '../support/redis/servers-alone.ts'

const as = (user: string, scheme = 'redis+cluster'): string => `${scheme}://${user}:p@127.0.0.1:7000`
const WRONG = new ErrorReply('WRONGPASS invalid')

/** A server that knows some users, and gives them what it gives all. */
function known(users: readonly string[], changes: Readonly<Record<string, unknown>> = {}): Server {
  const serve = master({ CLUSTER: slotsOf(7000, 7001), ...changes })
  return (words, connection) => {
    const { username = '' } = connection.options as { username?: string }
    return words[0] === 'connect' && !users.includes(username) ? WRONG : serve(words, connection)
  }
}

/** Tries a new user in place of an old one. */
async function tried(t: Test, servers: Record<number, Server | undefined>, replicas = 0) {
  const warnings: string[] = []
  serversOf(t, servers)
  const fault = await tryCredentials(as('new'), as('old'), replicas, (message) => warnings.push(message))
  return { fault, warnings }
}

const BOTH = ['old', 'new']

await test('new credentials can be used where every master that answers takes them', async (t) => {
  t.same(await tried(t, { 7000: known(BOTH), 7001: known(BOTH) }), { fault: undefined, warnings: [] })
  t.same(await tried(t, { 7000: known(BOTH) }), { fault: undefined, warnings: [] }, 'one does not answer')
  t.same(await tried(t, { 7000: known(['new']), 7001: known(['new']) }), { fault: undefined, warnings: [] })
})

await test('new credentials that a master refuses cannot be used, unless it refuses the present ones in the same way', async (t) => {
  const refuses = '127.0.0.1:7001 cannot be used (WRONGPASS)'
  t.match(await tried(t, { 7000: known(BOTH), 7001: known(['old']) }), { fault: refuses })
  t.match(await tried(t, { 7000: known(BOTH), 7001: known([]) }), { fault: undefined })
})

await test('new credentials cannot be used where no master serves, and the reason is that of one that is silent', async (t) => {
  t.match(await tried(t, {}), { fault: /^127\.0\.0\.1:7000 cannot be used \(ECONNREFUSED\)$/ })
  const replica = known(BOTH, { HELLO: { server: 'redis', version: '7.2.4', role: 'slave' } })
  t.match(await tried(t, { 7000: replica, 7001: replica }), { fault: /, but a replica/ })
  t.match(await tried(t, { 7000: replica }), { fault: /^127\.0\.0\.1:7001 cannot be used/ })
  const full = known(BOTH, { CLUSTER: [] })
  t.match(await tried(t, { 7000: full }), { fault: 'no master has a slot' })
})

await test('new credentials may not lack what instances share, or what replicas confirm, and may lack the rest', async (t) => {
  const lacking = (right: string) =>
    known(BOTH, {
      EVAL: (_words: unknown, { options }: { options: { username?: string } }) =>
        options.username === 'new' ? [right] : [],
    })
  const other = known(BOTH)
  t.match(await tried(t, { 7000: lacking('HSET hash'), 7001: other }), { fault: /no right to HSET$/ })
  t.match(await tried(t, { 7000: lacking('GETDEL key'), 7001: other }), { fault: /forbids GETDEL to this user$/ })
  t.match(await tried(t, { 7000: lacking('WAIT '), 7001: other }, 1), { fault: /forbids WAIT to this user$/ })
  t.match(await tried(t, { 7000: lacking('WAIT '), 7001: other }), { fault: undefined }, 'no replicas confirm')
  t.match(await tried(t, { 7000: lacking('PUBLISH '), 7001: other }), { fault: undefined })
})

await test('a master that does not answer the new credentials decides nothing as long as another one does', async (t) => {
  const busy: Server = (words, connection) =>
    (connection.options as { username?: string }).username === 'new'
      ? new Error('reset')
      : known(BOTH)(words, connection)
  t.match(await tried(t, { 7000: known(BOTH), 7001: busy }), { fault: undefined })
})

const sentinelsAs = (user: string): string => `redis+sentinel://${user}:p@127.0.0.1:1,127.0.0.1:2/bff`

await test('where Sentinels name several servers that are all of no use, what is wrong with them is told', async (t) => {
  const replica = known(BOTH, { HELLO: { server: 'redis', version: '7.2.4', role: 'slave' } })
  serversOf(t, {
    1: master({ SENTINEL: ['127.0.0.1', '7000'] }),
    2: master({ SENTINEL: ['127.0.0.1', '7001'] }),
    7000: replica,
    7001: replica,
  })
  t.match(await tryCredentials(sentinelsAs('new'), sentinelsAs('old'), 0), /^127\.0\.0\.1:7000 is .* but a replica/)
})

await test('a replica that refuses new credentials is named, and one that is away is not', async (t) => {
  const slots = [[0, 16_383, ['127.0.0.1', 7000], ['127.0.0.1', 7002], ['127.0.0.1', 7003], ['127.0.0.1', 7004]]]
  const { fault, warnings } = await tried(t, {
    7000: known(BOTH, { CLUSTER: slots }),
    7002: known(['old']),
    7003: known(BOTH),
  })
  t.equal(fault, undefined)
  t.same(warnings, ['the replica 127.0.0.1:7002 refuses the new credentials of REDIS_URL (WRONGPASS)'])
  const noPing = known(BOTH, { PING: new ErrorReply('NOPERM no') })
  t.match(await tried(t, { 7000: known(BOTH, { CLUSTER: slots }), 7003: noPing }), {
    warnings: ['the replica 127.0.0.1:7003 refuses the new credentials of REDIS_URL (NOPERM)'],
  })
})

await test('nobody need be told of replicas', async (t) => {
  const slots = [[0, 16_383, ['127.0.0.1', 7000], ['127.0.0.1', 7002]]]
  serversOf(t, { 7000: known(BOTH, { CLUSTER: slots }), 7002: known([]) })
  t.equal(await tryCredentials(as('new'), as('old'), 0), undefined)
})
