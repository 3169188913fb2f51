import type { Connection } from './connection.ts'
import type { MasterReport } from './master-report.ts'
import { replyCode } from './redis-link.ts'
import { runScript } from './scripts.ts'

/** How long the key of a probe lives in the store. Until then it is not written again. */
const KEY_TTL_MS = 60_000

/**
 * Tries what the store needs on two keys of this process: a hash that it writes once a minute, and a key that does not exist.
 * What would write is tried with the hash, a right that was taken away is so noticed a minute later at most; everything else
 * changes nothing, so nothing of it goes to replicas or to the disk. A command that this user may not run, or that the server
 * does not know, is named in the reply. No command of it fails otherwise, since servers count errors.
 *
 * The script has no flag, so a full server refuses it (OOM), and one that takes no writes does, too.
 */
const PROBE = `#!lua
local hash, none, refused = KEYS[1], KEYS[2], {}
local function try(name, ...)
  local reply = redis.pcall(name, ...)
  local isError = type(reply) == 'table' and reply.err
  if isError then refused[#refused + 1] = name end
  return not isError and reply
end
local time = try('TIME')
local now = time and time[1] * 1000 + math.floor(time[2] / 1000)
local ends = try('PEXPIRETIME', hash)
if ends and ends < 0 and try('HSET', hash, '', '') then
  local isWhole = now and try('PEXPIREAT', hash, now + ${KEY_TTL_MS}) and try('INCRBY', none, 0)
  try('DEL', none)
  if not isWhole then try('DEL', hash) end
end
try('GET', none)
try('MGET', none)
try('SET', none, '', 'XX', 'PX', 1)
try('DEL', none)
try('PEXPIREAT', none, 1)
try('HGET', none, '')
try('HGETALL', none)
try('HDEL', none, '')
return {now, refused}`

/** Replies of a Cluster's server that names another one for the key of the probe. */
const ELSEWHERE: ReadonlySet<string> = new Set(['MOVED', 'ASK', 'TRYAGAIN', 'CROSSSLOT'])

/**
 * Asks a master, in one round trip, whether the reads and writes of the store succeed there. The key has no braces.
 * @returns undefined where the master names another one for the key
 * @throws Error when it does not reply
 */
export async function probeMaster(server: Pick<Connection, 'eval'>, key: string): Promise<MasterReport | undefined> {
  const sentAt = performance.now()
  try {
    const reply = await runScript(server, PROBE, [key, `{${key}}:none`])
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
