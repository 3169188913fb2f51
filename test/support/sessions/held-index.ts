import { Changeable } from '../../../src/config/changing.ts'
import { Envelope } from '../../../src/sessions/envelope.ts'
import type { SessionRepository } from '../../../src/sessions/repository.ts'
import { SubjectIndex, type IndexedSession } from '../../../src/sessions/subject-index.ts'
import type { IndexEntry, SessionIndex } from '../../../src/store/session-index.ts'

/** An index by subject, and all that it asks of its store and of the sessions, in this order. */
export function heldIndex(
  secrets: readonly string[] = ['the secret'],
  keyOf?: (subject: string, secret: string) => string,
) {
  const entries = new Map<string, IndexEntry[]>()
  const calls: unknown[][] = []
  const world = { addedAt: 0, before: async (_what: string): Promise<void> => undefined, gone: [] as string[] }
  const note = async (what: string, ...args: unknown[]): Promise<void> => {
    await world.before(what)
    calls.push([what, ...args])
  }
  const read = (key: string) => entries.get(key) ?? []
  const index: SessionIndex = {
    async add(key, entry, after) {
      await note('add', key, entry.id, after)
      entries.set(key, [...read(key), { ...entry, addedAt: Math.max(after + 1, ++world.addedAt) }])
      return read(key).length
    },
    list: async (key) => read(key),
    async endAll(key) {
      await note('note all', key)
      return read(key)
    },
    async endIssued(key, mark, until) {
      await note('note issued', key, mark, until)
      return read(key)
    },
    end: async (key, ids) => note('note', key, ids),
    remove: async (key, ids) => note('remove', key, ids),
    look: async (key, id) => ({ isListed: true, endedAgoMs: 1, endedUntil: { issued: 2, sidless: 3 }, key, id }),
  }
  const sessions = {
    async end(key: string, reason: string, by: object) {
      await note('end', key, reason, by)
      return !world.gone.includes(key)
    },
    subjectTag: (subject?: string) => subject && `tag of ${subject}`,
    endings: { replicate: (key: string) => note('replicate', key) },
  } as unknown as SessionRepository
  const changing = new Changeable(secrets)
  const subjects = new SubjectIndex(index, new Envelope(changing), changing, sessions, keyOf)
  return {
    subjects,
    entries,
    calls,
    world,
    /** Adds a session with this store key. @returns its place */
    add: async (key: string, more: Partial<IndexedSession> = {}, id?: string) => {
      const made = subjects.newPlace('CR1')
      const place = id === undefined ? made : { ...made, id }
      const session = { tag: 'tag', startedAt: 1, client: 'client', key, page: 'page', ...more }
      const count = await subjects.add('CR1', place, session, 9000)
      return { place, count, session }
    },
  }
}
