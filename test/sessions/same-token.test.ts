import { test } from 'tap'
import { held, tokens } from '../support/login/token-endpoint.ts'
import { tokenWorld } from '../support/login/token-world.ts'

await test('two instances refresh once, even if the provider issues the same access token again', async (t) => {
  const { here, there, session, endpoint } = await tokenWorld(t)
  const old = await session(0)
  const waiting = held(tokens({ access_token: old.record.accessToken, refresh_token: 'refresh-2' }))
  endpoint.behaviour = waiting.behaviour
  const first = here.renewed(old)
  await waiting.asked
  const second = there.renewed(old)
  waiting.release()
  for (const lookup of await Promise.all([first, second, there.renewed(old)])) {
    t.equal(lookup.is === 'good' && lookup.session.record.refreshToken, 'refresh-2')
  }
  t.equal(endpoint.forms.length, 1)
})

await test('a token that upstream refuses is renewed again, if the last renewal issued the same one', async (t) => {
  const { here, there, session, endpoint } = await tokenWorld(t)
  const old = await session(0)
  endpoint.behaviour = tokens({ access_token: old.record.accessToken, refresh_token: 'refresh-2' })
  await here.renewed(old)
  endpoint.behaviour = tokens({ access_token: 'second' })
  const lookup = await there.afterRefusal(old, true)
  t.equal(lookup.is === 'good' && lookup.session.record.accessToken, 'second')
  t.same(
    endpoint.forms.map((form) => form.get('refresh_token')),
    ['refresh-1', 'refresh-2'],
  )
})
