import type { Connection } from './connection.ts'
import type { MasterReport } from './master-report.ts'
import { replyCode } from './redis-link.ts'
import { runScript } from './scripts.ts'

/** How often a probe writes. */
const WRITE_EVERY_MS = 60_000
/** How long what it has written lives, should it not be removed at once. */
const KEY_TTL_MS = 1000

/**
 * Tries what the store needs on two keys of this process that do not exist. What would write is tried once a minute, and removed
 * in the same step: a right that was taken away is so noticed a minute later at most. Everything else changes nothing, so nothing
 * of it goes to replicas or to the disk. A command that this user may not run, or that the server
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
if ARGV[1] == 'write' and try('HSET', hash, '', '') then
  if now then try('PEXPIREAT', hash, now + ${KEY_TTL_MS}) end
  try('INCRBY', none, 0)
  try('DEL', none)
  try('DEL', hash)
end
try('PEXPIRETIME', hash)
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
    // What was refused is tried again with each probe, so that it is known when it is allowed again.
    if (mustWrite && report?.refusal === undefined && report?.refused.length === 0) {
      this.#writesAt = performance.now() + WRITE_EVERY_MS
    }
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
