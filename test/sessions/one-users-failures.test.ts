import { test } from 'tap'
import { IDENTIFIED } from '../support/login/identity.ts'
import { tokens } from '../support/login/token-endpoint.ts'
import { ACCOUNTS } from '../support/user.ts'
import { startWorld } from '../support/world.ts'

/** The failures after which refreshes pause. */
const FAILURES = 5

await test('a user at whom alone the provider fails, again and again, keeps nobody else from a renewal', async (t) => {
  const world = await startWorld(t, IDENTIFIED)
  const { provider } = world
  let failed = 0
  provider.behaviour = (request, response, form) => {
    const user = form.get('code') ?? form.get('refresh_token')?.replace('refresh-', '') ?? ''
    if (form.has('refresh_token') && user === 'CR1') {
      failed++
      return void response.writeHead(500).end()
    }
    const lifetime = form.has('code') ? 0.001 : 3600
    tokens({ access_token: `of-${user}`, refresh_token: `refresh-${user}`, expires_in: lifetime })(
      request,
      response,
      form,
    )
  }
  const own = await Promise.all(Array.from({ length: FAILURES }, () => world.user('CR1')))
  const other = await world.user('CR2')
  for (const user of own) t.equal((await user.call('GET', ACCOUNTS)).status, 503)
  t.equal(failed, FAILURES)
  t.equal((await other.call('GET', ACCOUNTS)).status, 200)
})
