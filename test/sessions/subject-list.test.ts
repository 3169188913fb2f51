import { array, assert, asyncProperty, integer } from 'fast-check'
import { test } from 'tap'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { sessionRecord } from '../support/sessions/session-instance.ts'
import { subjectInstance } from '../support/sessions/subject-instance.ts'

const MINUTE_MS = 60_000
/** As in {@link subjectInstance}. */
const IDLE_MS = 600_000

await test('the last use of a session is up to a minute early, never late, and absent once its idle limit is at its end', async (t) => {
  const base = Date.now()
  let clock = base
  t.intercept(Date, 'now', { value: () => clock })
  let known = 0
  let unknown = 0
  const uses = array(integer({ min: 1, max: IDLE_MS - MINUTE_MS - 1 }), { maxLength: 12 })
  const lifetimes = integer({ min: MINUTE_MS, max: 60 * MINUTE_MS })
  let created = 0
  await assert(
    asyncProperty(uses, lifetimes, async (pauses, lifetimeMs) => {
      clock = base
      const { subjects, sessions } = await subjectInstance(new MemoryStore())
      const id = `session ${++created}`
      const endsAt = clock + lifetimeMs
      await subjects.enlist({ subject: 'CR1', id, endsAt, client: '203.0.113.9' })
      await sessions.create(id, sessionRecord({ endsAt }))
      let usedAt = clock
      const check = async (): Promise<void> => {
        const [session] = await subjects.list('CR1')
        if (session === undefined) throw new Error('no session is listed')
        const { lastUsedAt, startedAt } = session
        if (lastUsedAt === undefined) {
          unknown++
          if (usedAt + IDLE_MS + MINUTE_MS < endsAt) throw new Error('the last use could be known')
          return
        }
        known++
        if (lastUsedAt > usedAt) throw new Error(`${lastUsedAt - usedAt} ms late`)
        if (lastUsedAt < Math.max(startedAt, usedAt - MINUTE_MS)) throw new Error(`${usedAt - lastUsedAt} ms early`)
      }
      await check()
      for (const pause of pauses) {
        if (clock + pause >= endsAt) break
        clock += pause
        await sessions.touch(id, endsAt)
        usedAt = clock
        await check()
        clock = Math.min(clock + MINUTE_MS, endsAt - 1, usedAt + IDLE_MS - 1)
        await check()
      }
    }),
    {
      examples: [
        [[], MINUTE_MS],
        [[], 60 * MINUTE_MS],
      ],
    },
  )
  t.ok(known > 0 && unknown > 0, `${known} known, ${unknown} not`)
})
