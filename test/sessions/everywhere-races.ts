import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import type { Store } from '../../src/store/store.ts'
import { until } from '../support/time/until.ts'
import { REQUESTER, subjectInstance } from '../support/sessions/subject-instance.ts'

const SUBJECTS = 5
const INSTANCES = 3
const WAVES = 6
/** The longest pause between two steps of a login. */
const MAX_PAUSE_MS = 8

/** The pseudo-random numbers of a seed, from 0 to less than 1 (mulberry32). */
function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/**
 * Logs in and ends all sessions of a subject at random moments, on several instances. Asserts that no session lives whose
 * login had begun before the last end of all of its subject's was asked for, and that a login of each that began later does.
 */
export async function assertNoneSurvives(t: Test, open: () => Promise<Store>, logins: number): Promise<void> {
  const seed = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
  t.comment(`SEED=${seed}`)
  const next = random(seed)
  const pause = (): Promise<unknown> => (next() < 0.3 ? Promise.resolve() : delay(next() * MAX_PAUSE_MS))
  const stores = await Promise.all(Array.from({ length: INSTANCES }, open))
  const instances = await Promise.all(stores.map((store) => subjectInstance(store)))
  const any = () => instances[Math.floor(next() * INSTANCES)] as (typeof instances)[number]
  const begun: { subject: string; at: number; key: string | undefined }[] = []
  const ended = new Map<string, number>()
  const logIn = async (subject: string): Promise<string | undefined> => {
    await delay(next() * 20 * MAX_PAUSE_MS)
    const at = performance.now()
    const key = await any().logIn(subject, pause)
    begun.push({ subject, at, key })
    return key
  }
  const endAll = async (subject: string): Promise<void> => {
    await delay(next() * 20 * MAX_PAUSE_MS)
    const at = performance.now()
    await any().subjects.endAll(subject, { reason: 'logout', requester: REQUESTER })
    ended.set(subject, Math.max(at, ended.get(subject) ?? 0))
  }
  for (let wave = 0; wave < WAVES; wave++) {
    const subjects = Array.from({ length: Math.ceil(logins / WAVES) }, () => `subject ${Math.floor(next() * SUBJECTS)}`)
    const ends = Array.from({ length: 2 * SUBJECTS }, (_each, at) => `subject ${at % SUBJECTS}`)
    await Promise.all([...subjects.map(logIn), ...ends.map(endAll)])
  }
  for (let subject = 0; subject < SUBJECTS; subject++) {
    // A login that begins within a few milliseconds of an end of all may still be taken for an earlier one.
    await until(async () => (await logIn(`subject ${subject}`)) !== undefined, 'a login that begins later succeeds')
  }
  const values = await Promise.all(begun.map(async ({ key }) => key && stores[0]?.readUntracked(key)))
  const live = begun.filter((_login, at) => Boolean(values[at]))
  const survivors = live.filter(({ subject, at }) => at < (ended.get(subject) ?? 0))
  t.same(survivors, [], `of ${begun.length} logins, none that began before the end of all lives`)
  t.ok(live.length >= SUBJECTS, `${live.length} that began later live`)
  const listed = await Promise.all(
    Array.from({ length: SUBJECTS }, (_each, at) => any().subjects.list(`subject ${at}`)),
  )
  t.equal(listed.flat().length, live.length, 'and all of these are in the index')
}
