import { randomUUID } from 'node:crypto'
import { probeKey } from '../keys.ts'
import { SLOTS } from '../links/cluster-slots.ts'
import type { Connection } from '../links/connection.ts'
import { replyCode, type MasterServer } from '../links/redis-link.ts'
import { ASK_FOR_RIGHTS } from './rights.ts'

/** How often a probe writes. */
const WRITE_EVERY_MS = 60_000
/** How long what it has written lives, should it not be removed at once. */
const KEY_TTL_MS = 1000

/** The result of a probe. */
export interface MasterReport {
  /** The code of the error with which the master refuses everything; `OOM` if only what needs memory. Undefined while it serves. */
  readonly refusal: string | undefined
  /** The commands that it does not run for this user. */
  readonly refused: readonly string[]
  /** A reading of its clock. */
  readonly clock:
    | {
        /** The time that it showed (epoch ms), at some moment between the two others. */
        readonly time: number
        /** By the monotonic clock of this process (ms). */
        readonly sentAt: number
        readonly receivedAt: number
      }
    | undefined
}

/**
 * Asks for the rights of the store on two keys of this process that do not exist, and reads one of them. A write is tried once a
 * minute, and removed in the same step; a server that takes no writes refuses the script anyway, and so does a full one (OOM),
 * since the script has no flag.
 */
const PROBE = `#!lua
local key, hash = KEYS[1], KEYS[2]${ASK_FOR_RIGHTS}
local now
if not lacks['TIME '] then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
if not lacks['MGET key'] then redis.call('MGET', key) end
if ARGV[1] == 'write' and not (lacks['SET key'] or lacks['DEL key']) then
  redis.call('SET', key, '', 'PX', ${KEY_TTL_MS})
  redis.call('DEL', key)
end
return {now or false, refused}`

/** Replies of a Cluster's server that names another one for the key of the probe. */
const ELSEWHERE: ReadonlySet<string> = new Set(['MOVED', 'ASK', 'TRYAGAIN', 'CROSSSLOT'])

/** Asks a master whether the reads and writes of the store succeed there. */
export class MasterProbe {
  #key: string | undefined
  #writesAt = 0

  /**
   * One round trip.
   * @returns undefined where the master names another one for the key, or has lost its last slot
   * @throws Error when it does not reply
   */
  async ask(master: MasterServer, connection: Pick<Connection, 'eval' | 'ping'>): Promise<MasterReport | undefined> {
    if (this.#key === undefined || !master.owns(this.#key)) this.#key = keyOf(master)
    if (this.#key === undefined) return void (await connection.ping())
    const mustWrite = performance.now() >= this.#writesAt
    const report = await probe(connection, this.#key, mustWrite)
    // A master that refuses writes is tried again with each probe. Rights are asked for with each one anyway.
    const hasWritten = mustWrite && report !== undefined && report.refusal === undefined
    if (hasWritten) this.#writesAt = performance.now() + WRITE_EVERY_MS
    return report
  }
}

/** A new key of a master; undefined where it owns no slot. */
export function keyOf(master: Pick<MasterServer, 'owns'>): string | undefined {
  const id = randomUUID()
  for (let count = 0; count < SLOTS; count++) {
    const key = probeKey(`${id}.${count}`)
    if (master.owns(key)) return key
  }
  return undefined
}

async function probe(
  server: Pick<Connection, 'eval'>,
  key: string,
  mustWrite: boolean,
): Promise<MasterReport | undefined> {
  const sentAt = performance.now()
  try {
    const reply = await server.eval(PROBE, { keys: [key, `{${key}}:hash`], arguments: mustWrite ? ['write'] : [] })
    const [time, refused] = reply as [time: number | null, refused: string[]]
    const clock = time === null ? undefined : { time, sentAt, receivedAt: performance.now() }
    const names = refused.map((right) => right.slice(0, right.lastIndexOf(' ')))
    return { refusal: undefined, refused: [...new Set(names)], clock }
  } catch (error) {
    const code = replyCode(error)
    if (code === undefined) throw error
    if (ELSEWHERE.has(code)) return undefined
    // ERR: a server without EVAL, or one that has another name for it.
    if (code === 'ERR') return { refusal: 'UNKNOWN', refused: ['EVAL'], clock: undefined }
    return { refusal: code, refused: [], clock: undefined }
  }
}
