import { test } from 'tap'
import { IDENTIFIED } from '../support/login/identity.ts'
import { tokens } from '../support/login/token-endpoint.ts'
import { until } from '../support/time/until.ts'
import { ACCOUNTS } from '../support/user.ts'
import { startWorld } from '../support/world.ts'

/** The renewals that a process makes at once. */
const MOST = 64

await test('a user for whom alone the provider is slow takes a quarter of the renewals, and others need not wait for them', async (t) => {
  const world = await startWorld(t, IDENTIFIED)
  const { provider } = world
  let held = 0
  provider.behaviour = (request, response, form) => {
    const user = form.get('code') ?? form.get('refresh_token')?.replace('refresh-', '') ?? ''
    if (form.has('refresh_token') && user === 'CR1') return void held++
    const lifetime = form.has('code') ? 0.001 : 3600
    tokens({ access_token: `of-${user}`, refresh_token: `refresh-${user}`, expires_in: lifetime })(
      request,
      response,
      form,
    )
  }
  const own = await Promise.all(Array.from({ length: MOST }, () => world.user('CR1')))
  const other = await world.user('CR2')
  const statuses: number[] = []
  for (const user of own) void user.call('GET', ACCOUNTS).then(({ status }) => statuses.push(status))
  await until(() => held + statuses.length === MOST)
  t.equal((await other.call('GET', ACCOUNTS)).status, 200)
  t.equal(held, MOST / 4)
  t.same(new Set(statuses), new Set([503]))
})
