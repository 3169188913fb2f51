import { setImmediate } from 'node:timers/promises'
import { test, type Test } from 'tap'
import type { SessionRecord } from '../../src/sessions/session.ts'
import type { TokenLookup } from '../../src/sessions/token-renewal.ts'
import { heldWatcher } from '../support/sessions/held-watcher.ts'
import { sessionRecord } from '../support/sessions/session-instance.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'

// In a process of its own: the timers of all others would be held, too.

/** A session whose token has ended, or will, and the renewals of it. */
async function renewing(t: Test, more: Partial<SessionRecord> = {}, isUse = true) {
  const asked: { readonly ip: string | undefined; readonly reply: PromiseWithResolvers<TokenLookup> }[] = []
  const world = await heldWatcher(t, {
    record: { ...sessionRecord(), tokenExpiresAt: Date.now() + 5000, ...more },
    renew: (_session, client) => {
      const reply = Promise.withResolvers<TokenLookup>()
      asked.push({ ip: client?.ip, reply })
      return reply.promise
    },
  })
  await world.watch()
  await world.watch({ isUse, client: { ip: '192.0.2.1' } })
  return { ...world, asked }
}

await test('a token that expires while its session has a trading socket is renewed without a call, once at a time', async (t) => {
  const set = timeAhead(t)
  const world = await renewing(t)
  const pauseMs = world.pause() ?? 0
  t.ok(pauseMs > 1000 && pauseMs <= 5001, `${pauseMs}`)
  t.equal(world.asked.length, 0)
  set(5000)
  await world.check()
  t.same(
    world.asked.map(({ ip }) => ip),
    ['192.0.2.1'],
  )
  t.equal(world.pause(), 96_001, 'until the result is known')
  await world.check()
  t.equal(world.asked.length, 1)
  world.asked[0]?.reply.resolve({ is: 'providerDown', cause: undefined, retryAfterMs: 7000 })
  await setImmediate()
  const againMs = world.pause() ?? 0
  t.ok(againMs > 2000 && againMs <= 7001, `${againMs}`)
  set(7000)
  await world.check()
  t.equal(world.asked.length, 2)
  world.asked[1]?.reply.reject(new Error('planted'))
  await setImmediate()
  const laterMs = world.pause() ?? 0
  t.ok(laterMs > 0 && laterMs <= 1001, `${laterMs}`)
  set(1000)
  await world.check()
  await world.sessions.end(world.session.key, 'refused')
  world.asked[2]?.reply.resolve({ is: 'ended' })
  await setImmediate()
  t.equal(world.scheduled(), 0, 'nothing is checked after the end')
})

await test('a token is not renewed for a session without a trading socket or without a refresh token', async (t) => {
  const { refreshToken: _, ...without } = sessionRecord()
  for (const [name, start] of [
    ['no socket', (t: Test) => renewing(t, {}, false)],
    ['no refresh token', (t: Test) => renewing(t, { ...without, refreshToken: undefined as unknown as string })],
  ] as const) {
    await t.test(name, async (t) => {
      const set = timeAhead(t)
      const world = await start(t)
      t.ok([10_001, 96_001].includes(world.pause() ?? 0))
      set(6000)
      await world.check()
      t.equal(world.asked.length, 0)
    })
  }
})
