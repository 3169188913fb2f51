import type { Connection } from '../links/connection.ts'
import { replyCode } from '../links/redis-link.ts'

/** The commands that each part of the server needs; where not everything depends on them, with what an operator should do. */
export const NEEDS = {
  /** Every session, login and order. */
  sessions: ['GET', 'MGET', 'SET', 'DEL', 'PEXPIRETIME', 'PEXPIREAT', 'INCRBY', 'EVAL', 'TIME'],
  /** Sessions that belong to a subject, besides. */
  subjects: ['HSET', 'HGET', 'HGETALL', 'HDEL'],
  /** The limits over all instances, and the upstream budget. */
  sharing: {
    names: ['INFO', 'GETDEL', 'HDEL', 'PEXPIRE'],
    advice:
      'Allow the user of REDIS_URL to run them (ACL). Without them every process counts the calls and sockets of a session, and the upstream budget, on its own.',
  },
  /** Confirmations by replicas. */
  confirming: {
    names: ['WAIT', 'INFO'],
    advice:
      'Allow the user of REDIS_URL to run them (ACL). Without them calls with an Idempotency-Key are refused, unless IDEMPOTENCY_REPLICAS is 0.',
  },
}
const TRACKING = 'CLIENT TRACKING'
const REST_ADVICE = 'Everything works without them, some of it later: docs/operating/redis.md says what.'

/** A key as the store has them, and a hash of the same slot, by the names that they have in a script. */
type Place = 'key' | 'hash' | ''
/** How the places that a user may not use at all are named. */
const KEYS = { key: 'keys that begin with bff:1:', hash: 'keys that begin with {bff:1:' } as const

/** All that the store does: where, and the words of a command that does it, or fails for its words and leaves no key behind. */
const RIGHTS: readonly (readonly [on: Place, ...words: string[]])[] = [
  ['', 'CLIENT', 'TRACKING', 'ON', 'OPTOUT', 'NOLOOP'],
  ['', 'CLIENT', 'CACHING', 'NO'],
  ['key', 'SET', 'key', '', 'PX', '1'],
  ['key', 'GET', 'key'],
  ['key', 'GETRANGE', 'key', '0', '0'],
  ['key', 'MGET', 'key'],
  ['key', 'PEXPIRETIME', 'key'],
  ['key', 'INCRBY', 'key', 'x'],
  ['key', 'PEXPIRE', 'key', '1'],
  ['key', 'PEXPIREAT', 'key', '1', 'GT'],
  ['key', 'EVAL', 'return 0', '1', 'key'],
  ['key', 'GETDEL', 'key'],
  ['key', 'DEL', 'key'],
  ['hash', 'HSET', 'hash', 'field', '', ''],
  ['hash', 'PEXPIRE', 'hash', '1'],
  ['hash', 'HGET', 'hash', 'field'],
  ['hash', 'HGETALL', 'hash'],
  ['hash', 'HDEL', 'hash', 'field'],
  ['hash', 'DEL', 'hash'],
  ['', 'TIME'],
  ['', 'INFO', 'server'],
  ['', 'WAIT', '0', '1'],
  ['', 'PING'],
  ['', 'ROLE'],
  ['', 'DBSIZE'],
  ['', 'SCAN', '0', 'COUNT', '1'],
  ['', 'RANDOMKEY'],
  ['', 'PUBLISH', 'key', ''],
  ['', 'SUBSCRIBE', 'key'],
]

/**
 * Sets `refused` to the rights that this user has not got on `key` and `hash`, or the server does not know, each as
 * `COMMAND place`, and `lacks` to a set of them. Asking for a right runs no command, so it does not show in the statistics of Redis.
 */
export const ASK_FOR_RIGHTS = `
local refused, lacks = {}, {}
local function ask(right, ...)
  local isKnown, isAllowed = pcall(redis.acl_check_cmd, ...)
  if isKnown and isAllowed then return end
  refused[#refused + 1] = right
  lacks[right] = true
end
${RIGHTS.map(([on, ...words]) => `ask('${nameOf(words)} ${on}', ${words.map(asLua).join(', ')})`).join('\n')}`

/** How long the key of a trial lives, should the rest of the trial fail. */
const TRIAL_TTL_MS = 10_000

const RIGHTS_OF_USER = `
local key, hash = ARGV[1], ARGV[2]${ASK_FOR_RIGHTS}
return refused`

function nameOf([name = '', subcommand = '']: readonly string[]): string {
  return name === 'CLIENT' ? `${name} ${subcommand}` : name
}

function asLua(word: string): string {
  return word === 'key' || word === 'hash' ? word : `'${word}'`
}

/** The rights that a user lacks, and whether a write succeeded. */
interface Rights {
  /**
   * The missing needs of sessions, of subjects where there are any, the missing keys, and CLIENT TRACKING where it is used
   * and missing.
   */
  readonly needs: readonly string[]
  /** The server does not know EVAL, or has another name for it. */
  readonly isEvalUnknown: boolean
  /** Missing commands that cost something. */
  readonly others: readonly { readonly names: readonly string[]; readonly advice: string }[]
  /** The code of the error with which the server refused a write that is allowed. */
  readonly refusal: string | undefined
}

/** The use that is made of a server, and the time in which it must be found out whether it serves for that. */
export interface Uses {
  readonly timeoutMs: number
  /** The keys that were read are tracked. */
  readonly tracks: boolean
  /** Sessions have a subject. */
  readonly hasSubjects: boolean
  /** IDEMPOTENCY_REPLICAS */
  readonly replicas: number
}

/**
 * Tries a tracked read, a write and a script on a connection that ends soon, and asks for all other rights.
 * @param key without braces; in a Cluster of a slot of this server
 * @throws Error where the server is lost
 */
export async function tryRights(server: Connection, key: string, uses: Uses): Promise<Rights> {
  let refused: readonly string[] = []
  const asked = server.eval(RIGHTS_OF_USER, { keys: [], arguments: [key, `{${key}}:hash`] })
  const [script, tracking, write] = await Promise.all([
    codeOf(asked.then((reply) => (refused = reply as string[]))),
    codeOf(server.sendCommand(['CLIENT', 'TRACKING', 'ON', 'OPTOUT', 'NOLOOP'])),
    codeOf(server.set(key, '0', { expiration: { type: 'PX', value: TRIAL_TTL_MS } })),
    codeOf(server.get(key)),
    codeOf(server.send(key, ['DEL', key])),
  ])
  const missing =
    script === 'NOPERM'
      ? await missingOneByOne(server, key)
      : missingOf([
          ...(isMissing(tracking) ? [`${TRACKING} `] : []),
          ...(isMissing(script) ? ['EVAL key'] : []),
          ...refused,
        ])
  const refusal = [write, script].find((code) => code !== undefined && !isMissing(code))
  return { ...rightsOf(missing, refusal, uses), isEvalUnknown: script === 'ERR' }
}

/** The commands that a user may not run who may run no script. All are tried, but one that would take the connection over. */
async function missingOneByOne(server: Connection, key: string): Promise<Set<string>> {
  const places = { key, hash: `{${key}}:hash` }
  const tries = RIGHTS.filter(([, name]) => name !== 'SUBSCRIBE').map(async ([, ...words]) => {
    const sent = words.map((word) => (word === 'key' || word === 'hash' ? places[word] : word))
    return (await codeOf(server.send(key, sent))) === 'NOPERM' ? [nameOf(words)] : []
  })
  return new Set((await Promise.all(tries)).flat())
}

/** ERR: a server on which the command does not exist, or was renamed. */
function isMissing(code: string | undefined): boolean {
  return code === 'NOPERM' || code === 'ERR'
}

/** The names of the rights that are missing. Where all rights on a key are missing, the key is named instead. */
function missingOf(refused: readonly string[]): Set<string> {
  const lacks = new Set(refused)
  const all = (place: Place): boolean =>
    RIGHTS.every(([on, ...words]) => on !== place || lacks.has(`${nameOf(words)} ${on}`))
  const noKeys = all('key')
  const noBraces = !noKeys && all('hash') && !lacks.has('DEL key')
  const missing = new Set<string>([...(noKeys ? [KEYS.key] : []), ...(noBraces ? [KEYS.hash] : [])])
  for (const right of lacks) {
    const at = right.lastIndexOf(' ')
    const on = right.slice(at + 1)
    if (!(noKeys && on !== '') && !(noBraces && on === 'hash')) missing.add(right.slice(0, at))
  }
  return missing
}

function rightsOf(
  missing: ReadonlySet<string>,
  refusal: string | undefined,
  uses: Uses,
): Omit<Rights, 'isEvalUnknown'> {
  const among = (names: readonly string[]): string[] => names.filter((name) => missing.has(name))
  const needed = [
    ...Object.values(KEYS),
    ...NEEDS.sessions,
    ...(uses.hasSubjects ? NEEDS.subjects : []),
    ...(uses.tracks ? [TRACKING] : []),
  ]
  const others = (uses.replicas > 0 ? [NEEDS.sharing, NEEDS.confirming] : [NEEDS.sharing]).map(({ names, advice }) => ({
    names: among(names),
    advice,
  }))
  const told = new Set([...needed, ...others.flatMap(({ names }) => names), TRACKING])
  const rest = { names: [...missing].filter((name) => !told.has(name)), advice: REST_ADVICE }
  return { needs: among(needed), others: [...others, rest].filter(({ names }) => names.length > 0), refusal }
}

/** The code of an error reply; undefined where there is none. @throws Error where the server is lost */
async function codeOf(reply: Promise<unknown>): Promise<string | undefined> {
  try {
    await reply
    return undefined
  } catch (error) {
    const code = replyCode(error)
    if (code === undefined) throw error
    return code
  }
}
