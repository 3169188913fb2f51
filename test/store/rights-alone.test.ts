import { ErrorReply } from '@redis/client'
import { test } from 'tap'
import type { Connection } from '../../src/store/links/connection.ts'
import { ASK_FOR_RIGHTS, NEEDS, tryRights, type Uses } from '../../src/store/servers/rights.ts'

const USES: Uses = { timeoutMs: 1000, tracks: true, hasSubjects: true, replicas: 1 }
const NOTHING = { needs: [], isEvalUnknown: false, others: [], refusal: undefined }
const LATER = 'Everything works without them, some of it later: docs/operating/redis.md says what.'

type Answers = Partial<Record<'eval' | 'CLIENT' | 'set' | 'get' | 'DEL', string>>

/** Tries the rights of a user who lacks some, at a server that answers some commands with errors. */
async function rightsOf(refused: readonly string[], answers: Answers = {}, uses: Partial<Uses> = {}) {
  const sent: unknown[][] = []
  const answer = async (name: keyof Answers, reply: unknown, ...words: unknown[]): Promise<unknown> => {
    sent.push([name, ...words])
    const error = answers[name]
    if (error === undefined) return reply
    throw error === 'lost' ? new Error('lost') : new ErrorReply(`${error} that is why`)
  }
  const server = {
    eval: (script: string, parts: unknown) => answer('eval', refused, script, parts),
    sendCommand: (words: string[]) => answer('CLIENT', 'OK', ...words),
    set: (...words: unknown[]) => answer('set', 'OK', ...words),
    get: (...words: unknown[]) => answer('get', '0', ...words),
    send: (...words: unknown[]) => answer('DEL', 1, ...words),
  }
  const rights = await tryRights(server as unknown as Connection, 'bff:1:trial', { ...USES, ...uses })
  return { rights, sent }
}

const needsOf = async (refused: readonly string[]) => (await rightsOf(refused)).rights

/** All that is asked, each as `COMMAND place`, with its words. */
const ASKED = [...ASK_FOR_RIGHTS.matchAll(/^ask\('([^']*)', (.*)\)$/gm)].map(([, right = '', words = '']) => ({
  right,
  words,
}))
const allOn = (place: string): string[] =>
  ASKED.map(({ right }) => right).filter((right) => right.endsWith(` ${place}`))

await test('a user who may do everything lacks nothing, and the trial leaves no key', async (t) => {
  const { rights, sent } = await rightsOf([])
  t.same(rights, NOTHING)
  const [[, script, parts] = [], ...others] = sent
  t.equal(script, `\nlocal key, hash = ARGV[1], ARGV[2]${ASK_FOR_RIGHTS}\nreturn refused`)
  t.same(parts, { keys: [], arguments: ['bff:1:trial', '{bff:1:trial}:hash'] })
  t.same(others, [
    ['CLIENT', 'CLIENT', 'TRACKING', 'ON', 'OPTOUT', 'NOLOOP'],
    ['set', 'bff:1:trial', '0', { expiration: { type: 'PX', value: 10_000 } }],
    ['get', 'bff:1:trial'],
    ['DEL', 'bff:1:trial', ['DEL', 'bff:1:trial']],
  ])
})

await test('all that the store does is asked for, with words that the server understands', (t) => {
  t.same(
    ASKED.map(({ right, words }) => `${right}: ${words}`),
    [
      "CLIENT TRACKING : 'CLIENT', 'TRACKING', 'ON', 'OPTOUT', 'NOLOOP'",
      "CLIENT CACHING : 'CLIENT', 'CACHING', 'NO'",
      "SET key: 'SET', key, '', 'PX', '1'",
      "GET key: 'GET', key",
      "GETRANGE key: 'GETRANGE', key, '0', '0'",
      "MGET key: 'MGET', key",
      "PEXPIRETIME key: 'PEXPIRETIME', key",
      "INCRBY key: 'INCRBY', key, 'x'",
      "PEXPIRE key: 'PEXPIRE', key, '1'",
      "PEXPIREAT key: 'PEXPIREAT', key, '1', 'GT'",
      "EVAL key: 'EVAL', 'return 0', '1', key",
      "GETDEL key: 'GETDEL', key",
      "DEL key: 'DEL', key",
      "HSET hash: 'HSET', hash, 'field', '', ''",
      "PEXPIRE hash: 'PEXPIRE', hash, '1'",
      "HGET hash: 'HGET', hash, 'field'",
      "HGETALL hash: 'HGETALL', hash",
      "HDEL hash: 'HDEL', hash, 'field'",
      "DEL hash: 'DEL', hash",
      "TIME : 'TIME'",
      "INFO : 'INFO', 'server'",
      "WAIT : 'WAIT', '0', '1'",
      "PING : 'PING'",
      "ROLE : 'ROLE'",
      "DBSIZE : 'DBSIZE'",
      "SCAN : 'SCAN', '0', 'COUNT', '1'",
      "RANDOMKEY : 'RANDOMKEY'",
      "PUBLISH : 'PUBLISH', key, ''",
      "SUBSCRIBE : 'SUBSCRIBE', key",
    ],
  )
  t.end()
})

await test('what is needed is told, of what is used', async (t) => {
  const every = [...NEEDS.sessions, ...NEEDS.subjects]
  t.same(every.join(' '), 'GET MGET SET DEL PEXPIRETIME PEXPIREAT INCRBY EVAL TIME HSET HGET HGETALL HDEL')
  for (const { right } of ASKED) {
    const [name] = [right.slice(0, right.lastIndexOf(' '))]
    const { rights } = await rightsOf([right])
    t.same(rights.needs, every.includes(name) || name === 'CLIENT TRACKING' ? [name] : [], name)
  }
  const without = { hasSubjects: false, tracks: false }
  const lacking = await rightsOf(['HSET hash', 'CLIENT TRACKING ', 'GET key'], {}, without)
  t.same(lacking.rights.needs, ['GET'])
  t.same(lacking.rights.others, [{ names: ['HSET'], advice: LATER }], 'tracking is not missed where it is not used')
})

await test('what costs something is told with what to do, confirmations only where they are wanted', async (t) => {
  const lacked = ['INFO ', 'GETDEL key', 'PEXPIRE key', 'WAIT ', 'ROLE ']
  const sharing = { names: ['INFO', 'GETDEL', 'PEXPIRE'], advice: NEEDS.sharing.advice }
  t.same((await rightsOf(lacked)).rights.others, [
    sharing,
    { names: ['WAIT', 'INFO'], advice: NEEDS.confirming.advice },
    { names: ['ROLE'], advice: LATER },
  ])
  const none = await rightsOf(lacked, {}, { replicas: 0 })
  t.same(none.rights.others, [sharing, { names: ['WAIT', 'ROLE'], advice: LATER }])
  const advice =
    /^Allow the user of REDIS_URL to run them \(ACL\)\. Without them (every process counts|calls with an Idempotency-Key)/
  for (const each of [NEEDS.sharing, NEEDS.confirming]) t.match(each.advice, advice)
  t.same(
    [NEEDS.sharing.names, NEEDS.confirming.names],
    [
      ['INFO', 'GETDEL', 'HDEL', 'PEXPIRE'],
      ['WAIT', 'INFO'],
    ],
  )
})

await test('where a user has no right on any key, the keys are named instead', async (t) => {
  const [key, hash] = ['keys that begin with bff:1:', 'keys that begin with {bff:1:']
  t.match(await needsOf(allOn('key')), { needs: [key], others: [] })
  t.match(await needsOf([...allOn('key'), ...allOn('hash'), 'TIME ']), { needs: [key, 'TIME'], others: [] })
  t.match(await needsOf(allOn('hash')), { needs: [hash], others: [] })
  t.same((await needsOf(allOn('key').slice(1))).needs.includes(key), false)
  const some = await needsOf([...allOn('hash').slice(1)])
  t.same(some.needs, ['DEL', 'HGET', 'HGETALL', 'HDEL'])
  const both = await needsOf([...allOn('hash'), 'DEL key'])
  t.same(both.needs, ['DEL', 'HSET', 'HGET', 'HGETALL', 'HDEL'], 'it is the command that is missing')
})

await test('a script or a tracked read that the server does not know, or forbids, is missing', async (t) => {
  const every = ASKED.filter(({ right }) => right !== 'SUBSCRIBE ').length
  const forbidden = await rightsOf([], { eval: 'NOPERM' })
  t.equal(forbidden.sent.length, 5 + every, 'each right is tried without it')
  t.match(await rightsOf([], { eval: 'ERR' }), { rights: { ...NOTHING, needs: ['EVAL'], isEvalUnknown: true } })
  for (const CLIENT of ['NOPERM', 'ERR']) {
    t.same((await rightsOf([], { CLIENT })).rights, { ...NOTHING, needs: ['CLIENT TRACKING'] })
    t.same((await rightsOf([], { CLIENT }, { tracks: false })).rights, NOTHING)
  }
})

await test('a write that is allowed and refused all the same is told, and a server that is lost is an error', async (t) => {
  t.same((await rightsOf([], { set: 'OOM' })).rights, { ...NOTHING, refusal: 'OOM' })
  t.same((await rightsOf([], { eval: 'BUSY' })).rights, { ...NOTHING, refusal: 'BUSY' })
  t.same((await rightsOf([], { eval: 'BUSY', set: 'OOM' })).rights.refusal, 'OOM')
  t.same((await rightsOf(['SET key'], { set: 'NOPERM' })).rights, { ...NOTHING, needs: ['SET'] })
  for (const name of ['get', 'DEL', 'CLIENT'] as const) {
    t.equal((await rightsOf([], { [name]: 'LOADING' })).rights.refusal, undefined)
  }
  for (const name of ['eval', 'CLIENT', 'set', 'get', 'DEL'] as const) {
    await t.rejects(rightsOf([], { [name]: 'lost' }), { message: 'lost' })
  }
})
