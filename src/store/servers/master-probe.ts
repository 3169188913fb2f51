import type { Connection } from '../links/connection.ts'
import type { MasterReport } from './master-report.ts'
import { replyCode } from '../links/redis-link.ts'
import { runScript } from '../scripts.ts'

/** How often a probe writes. */
const WRITE_EVERY_MS = 60_000
/** How long what it has written lives, should it not be removed at once. */
const KEY_TTL_MS = 1000

/**
 * Asks for the rights that the store needs on two keys of this process that do not exist, and reads one of them. A write is tried
 * once a minute, and removed in the same step; a server that takes no writes refuses the script anyway, and so does a full one
 * (OOM), since the script has no flag. A command that this user may not run, or that the server does not know, is named in the
 * reply. Asking for a right runs no command, so it does not show in the statistics of Redis.
 */
const PROBE = `#!lua
local hash, none, refused = KEYS[1], KEYS[2], {}
local function may(name, ...)
  local isKnown, isAllowed = pcall(redis.acl_check_cmd, name, ...)
  if not (isKnown and isAllowed) then refused[#refused + 1] = name end
  return isKnown and isAllowed
end
local now
if may('TIME') then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
if may('MGET', none) then redis.call('MGET', none) end
local mayWrite = may('SET', none, '', 'PX', 1)
mayWrite = may('DEL', none) and mayWrite
if ARGV[1] == 'write' and mayWrite then
  redis.call('SET', none, '', 'PX', ${KEY_TTL_MS})
  redis.call('DEL', none)
end
may('GET', none)
may('INCRBY', none, 0)
may('PEXPIRETIME', none)
may('PEXPIREAT', none, 1)
may('HSET', hash, '', '')
may('HGET', hash, '')
may('HGETALL', hash)
may('HDEL', hash, '')
return {now or false, refused}`

/** Replies of a Cluster's server that names another one for the key of the probe. */
const ELSEWHERE: ReadonlySet<string> = new Set(['MOVED', 'ASK', 'TRYAGAIN', 'CROSSSLOT'])

/** Asks a master whether the reads and writes of the store succeed there. */
export class MasterProbe {
  readonly key: string
  #writesAt = 0

  /** @param key without braces */
  constructor(key: string) {
    this.key = key
  }

  /**
   * One round trip.
   * @returns undefined where the master names another one for the key
   * @throws Error when it does not reply
   */
  async ask(server: Pick<Connection, 'eval'>): Promise<MasterReport | undefined> {
    const mustWrite = performance.now() >= this.#writesAt
    const report = await ask(server, this.key, mustWrite)
    // A master that refuses writes is tried again with each probe. Rights are asked for with each one anyway.
    const hasWritten = mustWrite && report !== undefined && report.refusal === undefined
    if (hasWritten) this.#writesAt = performance.now() + WRITE_EVERY_MS
    return report
  }
}

async function ask(
  server: Pick<Connection, 'eval'>,
  key: string,
  mustWrite: boolean,
): Promise<MasterReport | undefined> {
  const sentAt = performance.now()
  try {
    const reply = await runScript(server, PROBE, [key, `{${key}}:none`], mustWrite ? ['write'] : [])
    const [time, refused] = reply as [time: number | null, refused: string[]]
    const clock = time === null ? undefined : { time, sentAt, receivedAt: performance.now() }
    return { refusal: undefined, refused: [...new Set(refused)], clock }
  } catch (error) {
    const code = replyCode(error)
    if (code === undefined) throw error
    if (ELSEWHERE.has(code)) return undefined
    // ERR: a server without EVAL, or one that has another name for it.
    if (code === 'ERR') return { refusal: 'UNKNOWN', refused: ['EVAL'], clock: undefined }
    return { refusal: code, refused: [], clock: undefined }
  }
}
