import { test } from 'tap'
import { IDENTIFIED, operate } from '../support/login/identity.ts'
import { until } from '../support/time/until.ts'
import { startWorld } from '../support/world.ts'

await test('while the store is away, GET and DELETE /sessions are 503, and the body says so', async (t) => {
  const { server, redis } = await startWorld(t, { ...IDENTIFIED, redis: true })
  redis?.process.kill('SIGKILL')
  await until(async () => (await operate(server, 'GET', { subject: 'CR1' })).status !== 200)
  for (const method of ['GET', 'DELETE'] as const) {
    const answer = await operate(server, method, { subject: 'CR1' })
    t.equal(answer.status, 503, method)
    t.same(await answer.json(), { error: 'The session store is unavailable' })
  }
})
