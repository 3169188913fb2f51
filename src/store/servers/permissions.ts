import { randomUUID } from 'node:crypto'
import type { Connection } from '../links/connection.ts'
import { probeKey } from '../keys.ts'
import { replyCode, type MasterCommands, type RedisLink } from '../links/redis-link.ts'

/** What an operator should do if there are such commands. */
export const PERMISSION_ADVICE =
  'Allow the user of REDIS_URL to run them (ACL). Without them every process counts the calls and sockets of a session, and the upstream budget, on its own.'

/** What an operator should do if WAIT or INFO is forbidden. */
export const WAIT_ADVICE =
  'Allow the user of REDIS_URL to run them (ACL). Without them calls with an Idempotency-Key are refused, unless IDEMPOTENCY_REPLICAS is 0.'

/** What an operator should know if other commands are forbidden. */
const REST_ADVICE = 'Everything works without them, some of it later: docs/operating/redis.md says what.'

/** What every session, login and order needs. */
export const NEEDS = ['GET', 'MGET', 'SET', 'DEL', 'PEXPIRETIME', 'PEXPIREAT', 'INCRBY', 'EVAL'] as const
/** What sessions that belong to a subject need besides. */
export const SUBJECT_NEEDS = ['TIME', 'HSET', 'HGET', 'HGETALL', 'HDEL'] as const
/** What the limits over all instances and the upstream budget need. */
const SHARED = ['TIME', 'INFO', 'GETDEL', 'HDEL', 'PEXPIRE'] as const
/** What confirmations by replicas need. */
const CONFIRMING = ['WAIT', 'INFO'] as const
const BRACES = 'keys that begin with {bff:1:'
const KEYS = 'keys that begin with bff:1:'
const TRACKING = 'CLIENT TRACKING'

/** How long what a trial writes lives, should the rest of the trial fail. */
const TRIAL_TTL_MS = 10_000

/** What a server lets a user do. */
export interface Rights {
  /**
   * What is missing of {@link NEEDS}, of what subjects need where there are any, of the keys, and of CLIENT TRACKING where it
   * is used.
   */
  readonly needs: readonly string[]
  /** Missing commands that cost something, with what an operator should do. */
  readonly others: readonly { readonly names: readonly string[]; readonly advice: string }[]
  /** The code of the error with which the server refused a write that is allowed. */
  readonly refusal: string | undefined
}

/** What a server is used for. */
export interface Uses {
  /** The keys that were read are tracked. */
  readonly tracks: boolean
  /** Sessions have a subject. */
  readonly hasSubjects: boolean
  /** IDEMPOTENCY_REPLICAS */
  readonly replicas: number
}

/**
 * Tries on a connection that ends soon what the store does, on two keys that live for seconds at most.
 * @param key without braces; in a Cluster of a slot of this server
 * @throws Error where the server is lost
 */
export async function tryRights(server: Connection, key: string, uses: Uses): Promise<Rights> {
  const hash = `{${key}}:hash`
  const trials = trialsOf(key, hash)
  const codes = await Promise.all(trials.map(({ words }) => codeOf(server.sendCommand(words))))
  codes.push(await codeOf(server.subscribe(key, () => undefined)))
  const failed = [...trials, { name: 'SUBSCRIBE', on: '' }].filter((_trial, at) => {
    const code = codes[at]
    // ERR: a server on which the command does not exist, or was renamed.
    return code === 'NOPERM' || code === 'ERR'
  })
  const missing = new Set<string>()
  const all = new Set(failed.map(({ name, on }) => `${name} ${on}`))
  const refuses = (on: string): boolean => trials.every((trial) => trial.on !== on || all.has(`${trial.name} ${on}`))
  const noKeys = refuses(key)
  const noBraces = !noKeys && refuses(hash) && !all.has(`DEL ${key}`)
  if (noKeys) missing.add(KEYS)
  if (noBraces) missing.add(BRACES)
  for (const { name, on } of failed) if (!(noKeys && on !== '') && !(noBraces && on === hash)) missing.add(name)
  return rightsOf(missing, codes[1], uses)
}

interface Trial {
  readonly name: string
  /** The key that it concerns; empty for none. */
  readonly on: string
  readonly words: string[]
}

function of(on: string, ...words: string[]): Trial {
  return { name: words[0] ?? '', on, words }
}

function client(subcommand: string, ...words: string[]): Trial {
  return { name: `CLIENT ${subcommand}`, on: '', words: ['CLIENT', subcommand, ...words] }
}

function trialsOf(key: string, hash: string): readonly Trial[] {
  const ms = String(TRIAL_TTL_MS)
  return [
    client('TRACKING', 'ON', 'OPTOUT', 'NOLOOP'),
    // Its reply also says whether the server takes writes.
    of(key, 'SET', key, '0', 'PX', ms),
    of(key, 'GET', key),
    of(key, 'GETRANGE', key, '0', '0'),
    of(key, 'MGET', key),
    of(key, 'PEXPIRETIME', key),
    of(key, 'INCRBY', key, '1'),
    of(key, 'PEXPIRE', key, ms),
    of(key, 'PEXPIREAT', key, '1', 'GT'),
    of(key, 'EVAL', 'return 0', '1', key),
    of(key, 'GETDEL', key),
    of(key, 'DEL', key),
    of(hash, 'HSET', hash, 'field', ''),
    of(hash, 'PEXPIRE', hash, ms),
    of(hash, 'HGET', hash, 'field'),
    of(hash, 'HGETALL', hash),
    of(hash, 'HDEL', hash, 'field'),
    of(hash, 'DEL', hash),
    of('', 'TIME'),
    of('', 'INFO', 'server'),
    of('', 'WAIT', '0', '1'),
    of('', 'PING'),
    of('', 'ROLE'),
    of('', 'DBSIZE'),
    of('', 'SCAN', '0', 'COUNT', '1'),
    of('', 'RANDOMKEY'),
    of('', 'PUBLISH', key, ''),
    client('CACHING', 'NO'),
  ]
}

function rightsOf(missing: ReadonlySet<string>, refusal: string | undefined, uses: Uses): Rights {
  const among = (names: readonly string[]): string[] => names.filter((name) => missing.has(name))
  const needed = [
    KEYS,
    BRACES,
    ...NEEDS,
    ...(uses.hasSubjects ? SUBJECT_NEEDS : []),
    ...(uses.tracks ? [TRACKING] : []),
  ]
  const groups = [
    { names: among(SHARED), advice: PERMISSION_ADVICE },
    { names: uses.replicas > 0 ? among(CONFIRMING) : [], advice: WAIT_ADVICE },
  ]
  const told = new Set([...needed, ...groups.flatMap(({ names }) => names), TRACKING])
  const rest = { names: [...missing].filter((name) => !told.has(name)), advice: REST_ADVICE }
  return {
    needs: among(needed),
    others: [...groups, rest].filter(({ names }) => names.length > 0),
    refusal: refusal === 'NOPERM' || refusal === 'ERR' ? undefined : refusal,
  }
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

/**
 * Tries the commands without which the limits over all instances and the upstream budget are not shared, and returns those
 * that this user may not run. Changes nothing: all of them concern a key that does not exist. None reads it, since the server
 * would then watch the key (CLIENT TRACKING).
 * @throws Error where the server is lost
 */
async function forbiddenCommands(server: Pick<MasterCommands, 'sendCommand'>): Promise<string[]> {
  const key = probeKey(randomUUID())
  const commands = [['TIME'], ['INFO', 'server'], ['GETDEL', key], ['HDEL', key, ''], ['PEXPIRE', key, '1']]
  const codes = await Promise.all(commands.map((words) => codeOf(server.sendCommand(words))))
  return commands.flatMap(([name = ''], at) => (codes[at] === 'NOPERM' || codes[at] === 'ERR' ? [name] : []))
}

/** Logs a warning if a server forbids such commands. Never rejects. */
export async function warnOfForbiddenCommands(
  link: Pick<RedisLink, 'askMasters'>,
  log: { warn(details: object, message: string): void },
): Promise<void> {
  // A server that is lost meanwhile is not asked again: --check asks, too.
  const replies = await link.askMasters(forbiddenCommands).catch(() => [])
  const commands = [...new Set(replies.flat())]
  if (commands.length > 0) log.warn({ commands, advice: PERMISSION_ADVICE }, 'the session store forbids commands')
}
