import { ConnectionTimeoutError, ErrorReply } from '@redis/client'
import { test, type Test } from 'tap'
import { CommandTimeout } from '../../src/time/deadline.ts'
import { Connection } from '../../src/store/links/connection.ts'
import { MEMBER_ADVICE } from '../../src/store/links/cluster-slots.ts'
import { ADVICE } from '../../src/store/servers/causes.ts'
import { checkServer, compareAll, serves, unreachable } from '../../src/store/servers/server-check.ts'
import type { Uses } from '../../src/store/servers/rights.ts'

const NAME = 'redis.test:6379'
const USES: Uses = { timeoutMs: 1000, tracks: true, hasSubjects: true, replicas: 0 }
const SERVER = { server: 'redis', version: '7.2.4', role: 'master' }
const WHAT = `${NAME} is Redis 7.2.4`
const OK = { is: 'ok', setting: 'REDIS_URL', message: `${WHAT}, a master that takes writes` }
const NOW = 1_700_000_000_000

/** What a server replies, by the first word of a command; an error is thrown. */
type Replies = Readonly<Record<string, unknown>>

/** The findings at a server that replies like this. */
async function check(t: Test, replies: Replies = {}, uses: Partial<Uses> = {}, options: object = {}) {
  t.intercept(Date, 'now', { value: () => NOW })
  const all: Replies = {
    TIME: [String(NOW / 1000 - 2), '500000'],
    HELLO: SERVER,
    INFO: '',
    EVAL: [],
    CLIENT: 'OK',
    SET: 'OK',
    GET: '0',
    DEL: 1,
    ...replies,
  }
  const answer = async (name: string): Promise<unknown> => {
    const reply = all[name]
    if (reply instanceof Error) throw reply
    return reply
  }
  t.intercept(Connection.prototype, 'connect', { value: async () => answer('connect') })
  t.intercept(Connection.prototype, 'destroy', { value: () => undefined })
  t.intercept(Connection.prototype, 'sendCommand', {
    value: async ([name, section]: string[]) => answer(section === 'cluster' ? 'INFO cluster' : String(name)),
  })
  return checkServer({ socket: { host: '127.0.0.1', port: 1 }, ...options }, NAME, 'bff:1:trial', { ...USES, ...uses })
}

/** The warnings of servers of whose clocks this one is so far ahead. */
const warningsOf = (...ahead: (number | undefined)[]) =>
  compareAll(ahead.map((hereAheadMs) => ({ results: [], hereAheadMs, isReached: true })))
/** A range of the slots of a Cluster. */
const range = (first: number, last: number, port: number) => [first, last, ['host', port]]
const error = (text: string): Error => new ErrorReply(`${text} that is why`)
const coded = (code: string): Error => Object.assign(new Error(code), { code })

await test('a master that does all that is wanted serves, and it is known how far its clock is behind', async (t) => {
  const findings = await check(t, { 'INFO cluster': '' })
  t.same(findings, { results: [OK], hereAheadMs: 1500, isReached: true })
  t.equal(serves(findings), true)
  const silent = await check(t, { 'INFO cluster': '', TIME: error('NOPERM') })
  t.equal(silent.hereAheadMs, undefined)
})

await test('a server is called by its product, and one that is too old or a replica does not serve', async (t) => {
  for (const [hello, is, message, advice] of [
    [{ server: 'valkey', version: '1.0' }, 'ok', 'is Valkey 1.0, a master that takes writes', undefined],
    [{ server: 'redict' }, 'ok', 'is Redict 7.2.4, a master that takes writes', undefined],
    [{ server: 'other' }, 'ok', 'is other 7.2.4, a master that takes writes', undefined],
    [{ version: '7.0.0' }, 'ok', 'is Redis 7.0.0, a master that takes writes', undefined],
    [{ version: '6.2.14' }, 'failed', 'is Redis 6.2.14', 'Redis 7 or newer is needed.'],
    [{ role: 'replica' }, 'failed', 'is Redis 7.2.4, but a replica, which takes no writes', ADVICE['READONLY']],
  ] as const) {
    const findings = await check(t, { 'INFO cluster': '', HELLO: { ...SERVER, ...hello } })
    t.match(findings.results, [{ is, message: `${NAME} ${message}`, advice }])
    t.equal(findings.results.length, 1)
    t.equal(serves(findings), is === 'ok')
  }
  t.match((await check(t, { HELLO: {} })).results, [{ is: 'failed', message: `${NAME} is  , but a replica` }])
})

await test('a member of a Cluster that is reached as if it were alone does not serve', async (t) => {
  const member = { 'INFO cluster': 'cluster_enabled:1', CLUSTER: [range(0, 1, 1), range(2, 3, 2)] }
  t.match((await check(t, member)).results, [
    { is: 'failed', message: `${NAME} is one of 2 masters of a Cluster`, advice: MEMBER_ADVICE },
  ])
  t.same((await check(t, member, { tracks: false })).results, [OK])
  for (const alone of [{ ...member, CLUSTER: [range(0, 3, 1)] }, { 'INFO cluster': error('NOPERM') }]) {
    t.same((await check(t, alone)).results, [OK])
  }
})

await test('missing rights are told with what to do', async (t) => {
  const of = async (replies: Replies) => (await check(t, { 'INFO cluster': '', ...replies })).results
  t.match(await of({ EVAL: ['GET key', 'SET key'] }), [
    { is: 'failed', message: `${WHAT}, but this user has no right to GET, SET`, advice: ADVICE['NOPERM'] },
  ])
  t.match(await of({ CLIENT: error('ERR') }), [
    { is: 'failed', message: `${WHAT}, but this user has no right to CLIENT TRACKING`, advice: ADVICE['NOTRACKING'] },
  ])
  t.match(await of({ EVAL: error('ERR') }), [
    { is: 'failed', message: `${WHAT}, but it does not know EVAL`, advice: ADVICE['UNKNOWN'] },
  ])
  t.match(await of({ EVAL: ['ROLE ', 'PING '] }), [
    OK,
    { is: 'warning', message: `${NAME} forbids ROLE, PING to this user`, advice: /^Everything works without them/ },
  ])
})

await test('a write that is refused is told, and a full server still serves', async (t) => {
  for (const [code, is, text] of [
    ['OOM', 'warning', 'which refuses writes (OOM)'],
    ['MISCONF', 'failed', 'which refuses writes (MISCONF)'],
    ['BUSY', 'failed', 'which does not serve (BUSY)'],
  ] as const) {
    const { results } = await check(t, { 'INFO cluster': '', SET: error(code) })
    t.match(results, [{ is, message: `${WHAT}, ${text}`, advice: ADVICE[code] }])
    t.equal(results.length, 1)
  }
})

await test('memory that is nearly full, or that evicts, and replicas are warned of', async (t) => {
  const of = async (lines: readonly string[], uses: Partial<Uses> = {}) =>
    (await check(t, { 'INFO cluster': '', INFO: lines.join('\r\n') }, uses)).results
  t.same(await of(['maxmemory_policy:noeviction', 'used_memory:90', 'maxmemory:100']), [OK])
  t.same(await of(['used_memory:90', 'maxmemory:0']), [OK])
  t.match(await of(['maxmemory_policy:allkeys-lru', 'used_memory:91', 'maxmemory:100']), [
    {
      is: 'warning',
      message: `${WHAT}, which may drop sessions (allkeys-lru)`,
      advice: 'Set maxmemory-policy to noeviction. Otherwise Redis logs users out when memory is short.',
    },
    {
      is: 'warning',
      message: `${WHAT}, which uses 91 % of its maxmemory`,
      advice: 'Raise maxmemory (REDIS_MAXMEMORY with compose), or find what fills it. A full Redis refuses logins.',
    },
  ])
  const replicas = await of(['role:master', 'connected_slaves:0'], { replicas: 1 })
  t.match(replicas[1], { is: 'warning', message: new RegExp(`^${NAME}: replicas of Redis: 0`) })
})

await test('a server that cannot be asked is told with the reason', async (t) => {
  for (const INFO of [error('NOPERM'), error('ERR')])
    t.same((await check(t, { 'INFO cluster': '', INFO })).results, [OK])
  const loading = await check(t, { INFO: error('LOADING') })
  t.match(loading, { isReached: true, results: [{ is: 'failed', advice: ADVICE['LOADING'] }], hereAheadMs: 1500 })
  t.match(await check(t, { connect: coded('ECONNREFUSED') }), {
    isReached: false,
    hereAheadMs: undefined,
    results: [{ is: 'failed', message: `${NAME} cannot be used (ECONNREFUSED)` }],
  })
  const database = await check(t, { connect: error('ERR') }, {}, { url: 'redis://127.0.0.1:1/99' })
  const advice = /^Check the number at the end of REDIS_URL: Redis has the databases 0 to 15 by default/
  t.match(database.results, [{ is: 'failed', message: `${NAME} may not have this database (ERR)`, advice }])
})

await test('the reason for which a server is not reached says what to check', (t) => {
  for (const [cause, code, advice] of [
    [new ConnectionTimeoutError(), 'ETIMEDOUT', /whether it uses TLS/],
    [new CommandTimeout('late'), 'ETIMEDOUT', /whether it uses TLS \(rediss:\/\/\), and the network on the way there/],
    [coded('ENOTFOUND'), 'ENOTFOUND', /^Check the address in REDIS_URL, and DNS on this machine\.$/],
    [coded('EAI_AGAIN'), 'EAI_AGAIN', /DNS/],
    [coded('ENETUNREACH'), 'ENETUNREACH', /the network of this machine, which has no route there\.$/],
    [coded('EHOSTUNREACH'), 'EHOSTUNREACH', /no route/],
    [coded('EADDRNOTAVAIL'), 'EADDRNOTAVAIL', /no route/],
    [coded('XENOTFOUNDX'), 'XENOTFOUNDX', /TLS/],
    [coded('XENETUNREACHX'), 'XENETUNREACHX', /TLS/],
    [new Error('of another kind'), 'error', /TLS/],
    [error('WRONGPASS'), 'WRONGPASS', /^Check user and password in REDIS_URL/],
    [error('STRANGE'), 'STRANGE', /TLS/],
  ] as const) {
    const result = unreachable(cause, NAME)
    t.match(result, { is: 'failed', setting: 'REDIS_URL', message: `${NAME} cannot be used (${code})`, advice })
  }
  t.end()
})

await test('clocks that differ are warned of, by their median and their range', (t) => {
  t.same([warningsOf(), warningsOf(undefined), warningsOf(0, undefined, 5000)], [[], [], []])
  t.match(warningsOf(9000, 8000, 7000), [{ is: 'warning', setting: 'REDIS_URL', message: /is 8 s ahead of/ }])
  t.match(warningsOf(3000, 0, -3000), [{ is: 'warning', message: /up to 6 s apart/ }])
  t.notOk('advice' in (warningsOf(9000)[0] ?? {}))
  t.end()
})
