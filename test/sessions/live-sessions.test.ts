import { test } from 'tap'
import { LiveSessions } from '../../src/sessions/live-sessions.ts'
import type { ListedSession } from '../../src/sessions/subject-index.ts'
import { besideKey } from '../../src/store/keys.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { until } from '../support/time/until.ts'

const HOUR = 3_600_000

/** Subjects whose sessions are all live. @param read store keys of a subject's sessions */
function allLive(read: (subject: string) => readonly string[], freshMs: number): LiveSessions {
  const list = async (subject: string) => read(subject).map((key) => ({ key }) as ListedSession)
  return new LiveSessions({ list }, { readMany: async (keys) => keys.map(() => '') }, HOUR, freshMs)
}

await test('requests for the sessions of a subject at the same time, or soon after, share a reading', async (t) => {
  const read: string[] = []
  const live = allLive((subject) => {
    read.push(subject)
    return [`${subject}-1`, `${subject}-2`]
  }, HOUR)
  const answers = await Promise.all(Array.from({ length: 100 }, () => live.keysOf('CR1', 'CR1-1')))
  for (const answer of answers) t.same([...answer], ['CR1-1', 'CR1-2'])
  await live.keysOf('CR1', 'CR1-1')
  t.same([...(await live.keysOf('CR2', 'CR2-1'))], ['CR2-1', 'CR2-2'])
  t.same(read, ['CR1', 'CR2'])
})

await test('a reading from before a login does not count for its session, which replaced another', async (t) => {
  let keys = ['replaced', 'elsewhere']
  let readings = 0
  const live = allLive(() => (readings++, keys), HOUR)
  t.same([...(await live.keysOf('CR1', 'replaced'))], ['replaced', 'elsewhere'])
  keys = ['elsewhere', 'new']
  t.same([...(await live.keysOf('CR1', 'new'))], ['elsewhere', 'new'])
  keys = ['elsewhere']
  for (const time of [1, 2, 3]) t.equal((await live.keysOf('CR1', 'lost')).size, 2, `${time}`)
  t.equal(readings, 3, 'a session that the index has lost causes one reading')
})

await test('a reading does not count for long, and a failed one not at all', async (t) => {
  const keys = ['first']
  let isDown = true
  const live = allLive(() => {
    if (isDown) throw new StoreUnavailable('gone')
    return [...keys]
  }, 1)
  await t.rejects(live.keysOf('CR1', 'first'), StoreUnavailable)
  isDown = false
  t.equal((await live.keysOf('CR1', 'first')).size, 1)
  keys.push('second')
  await until(async () => (await live.keysOf('CR1', 'first')).size === 2)
})

await test('the number of kept readings is bounded by the number of sessions, not of subjects', async (t) => {
  let readings = 0
  const live = allLive((subject) => {
    readings++
    return Array.from({ length: 999 }, (_, at) => `${subject}-${at}`)
  }, HOUR)
  for (let subject = 0; subject <= 20; subject++) await live.keysOf(`CR${subject}`, `CR${subject}-0`)
  t.equal(readings, 21)
  await live.keysOf('CR20', 'CR20-0')
  t.equal(readings, 21, 'the latest is kept')
  await live.keysOf('CR0', 'CR0-0')
  t.equal(readings, 22, 'the oldest is not')
})

await test('a session lives that is in the store, or whose login has yet to create it and that nobody has ended', async (t) => {
  const stored = new Set(['live', besideKey('ended', 'tombstone'), besideKey('live', 'tombstone')])
  const read: (readonly string[])[] = []
  const readMany = async (keys: readonly string[]) => {
    read.push(keys)
    return keys.map((key) => (stored.has(key) ? '' : undefined))
  }
  const now = Date.now()
  const listed = (key: string, ageMs: number) => ({ key, startedAt: now - ageMs }) as ListedSession
  const sessions = [
    listed('live', HOUR),
    listed('beginning', 59_000),
    listed('gone', 60_000),
    listed('ended', 1000),
    listed('long gone', HOUR),
  ]
  const index = { list: async () => [] }
  const isAlive = await new LiveSessions(index, { readMany }, HOUR).among(sessions)
  t.same(sessions.filter(isAlive), sessions.slice(0, 2))
  t.same(
    read[1],
    ['beginning', 'ended'].map((key) => besideKey(key, 'tombstone')),
  )
  const idle = await new LiveSessions(index, { readMany }, 30_000).among(sessions)
  t.same(sessions.filter(idle), sessions.slice(0, 1), 'a session that reached its idle limit leaves no tombstone')
})

await test('a reading tells the live sessions alone, and counts for those who wait although others push it out', async (t) => {
  const gate = Promise.withResolvers<void>()
  const many = Array.from({ length: 19_998 }, (_, at) => `CR2-${at}`)
  const list = async (subject: string) => {
    if (subject === 'CR1') await gate.promise
    const keys = subject === 'CR2' ? many : ['live', 'gone']
    return keys.map((key) => ({ key }) as ListedSession)
  }
  const stored = { readMany: async (keys: readonly string[]) => keys.map((key) => (key === 'gone' ? undefined : '')) }
  const live = new LiveSessions({ list }, stored, HOUR, HOUR)
  const waiting = live.keysOf('CR1', 'live')
  t.equal((await live.keysOf('CR2', 'CR2-0')).size, 19_998)
  t.equal((await live.keysOf('CR3', 'live')).size, 1)
  gate.resolve()
  t.same([...(await waiting)], ['live'])
})
