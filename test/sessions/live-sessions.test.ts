import { test } from 'tap'
import { LiveSessions } from '../../src/sessions/live-sessions.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { until } from '../support/time/until.ts'

const HOUR = 3_600_000

await test('who asks for the sessions of a subject at the same time, or soon after, shares a reading', async (t) => {
  const read: string[] = []
  const live = new LiveSessions(async (subject) => {
    read.push(subject)
    return [`${subject}-1`, `${subject}-2`]
  }, HOUR)
  const answers = await Promise.all(Array.from({ length: 100 }, () => live.of('CR1')))
  for (const answer of answers) t.same([...answer], ['CR1-1', 'CR1-2'])
  await live.of('CR1')
  t.same([...(await live.of('CR2'))], ['CR2-1', 'CR2-2'])
  t.same(read, ['CR1', 'CR2'])
})

await test('a reading does not count for long, and a failed one not at all', async (t) => {
  const keys = ['first']
  let isDown = true
  const live = new LiveSessions(async () => {
    if (isDown) throw new StoreUnavailable('gone')
    return [...keys]
  }, 1)
  await t.rejects(live.of('CR1'), StoreUnavailable)
  isDown = false
  t.equal((await live.of('CR1')).size, 1)
  keys.push('second')
  await until(async () => (await live.of('CR1')).size === 2)
})

await test('what is kept is bounded by the number of sessions, not of subjects', async (t) => {
  let readings = 0
  const live = new LiveSessions(async (subject) => {
    readings++
    return Array.from({ length: 999 }, (_, at) => `${subject}-${at}`)
  }, HOUR)
  for (let subject = 0; subject <= 20; subject++) await live.of(`CR${subject}`)
  t.equal(readings, 21)
  await live.of('CR20')
  t.equal(readings, 21, 'the latest is kept')
  await live.of('CR0')
  t.equal(readings, 22, 'the oldest is not')
})
