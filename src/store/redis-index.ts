import { ADD, END, END_ALL, LIST, LOOK, REMOVE } from './index-scripts.ts'
import type { RedisCommands } from './redis-link.ts'
import { ENDED_MS, type EntryState, type IndexEntry, type NewEntry, type SessionIndex } from './session-index.ts'

/** Runs a command against a deadline, without tracking its keys. @throws StoreUnavailable */
type Ask = <Reply>(command: (redis: RedisCommands) => Promise<Reply>) => Promise<Reply>

/** A time, and a hash as a flat list of fields and values. */
type ListReply = [now: number, fields: string[]]
type LookReply = [now: number, entry: string | null, endedAt: string | null]

/** {@link SessionIndex} in Redis. */
export class RedisIndex implements SessionIndex {
  readonly #ask: Ask

  constructor(ask: Ask) {
    this.#ask = ask
  }

  async add(key: string, { id, value, expiresAt }: NewEntry, after: number): Promise<number> {
    return (await this.#run(ADD, key, [id, value, String(expiresAt), String(after)])) as number
  }

  async list(key: string): Promise<readonly IndexEntry[]> {
    return entriesOf((await this.#run(LIST, key)) as ListReply)
  }

  async endAll(key: string): Promise<readonly IndexEntry[]> {
    return entriesOf((await this.#run(END_ALL, key)) as ListReply)
  }

  async end(key: string, ids: readonly string[]): Promise<void> {
    if (ids.length > 0) await this.#run(END, key, ids)
  }

  async remove(key: string, ids: readonly string[]): Promise<void> {
    if (ids.length > 0) await this.#run(REMOVE, key, ids)
  }

  async look(key: string, id: string): Promise<EntryState> {
    const [now, entry, endedAt] = (await this.#run(LOOK, key, [id])) as LookReply
    const agoMs = endedAt === null ? Infinity : now - Number(endedAt)
    return {
      isListed: entry !== null && !entry.endsWith(' ended'),
      endedAgoMs: agoMs < ENDED_MS ? agoMs : undefined,
    }
  }

  #run(script: string, key: string, args: readonly string[] = []): Promise<unknown> {
    return this.#ask((redis) => redis.eval(script, { keys: [key], arguments: [...args] }))
  }
}

function entriesOf([now, fields]: ListReply): readonly IndexEntry[] {
  const entries: IndexEntry[] = []
  for (let at = 0; at < fields.length; at += 2) {
    const [id = '', text = ''] = fields.slice(at, at + 2)
    const [addedAt, expiresAt, value] = text.split(' ')
    if (value !== undefined && Number(expiresAt) > now) {
      entries.push({ id, value, addedAt: Number(addedAt), expiresAt: Number(expiresAt) })
    }
  }
  return entries.toSorted((one, other) => one.addedAt - other.addedAt)
}
