import { test } from 'tap'
import { AT_ONCE, LASTING, NEVER } from '../support/login/refusal-codes.ts'
import { refusalWorld } from '../support/login/refusal-world.ts'
import { json } from '../support/login/token-endpoint.ts'

/** What concerns this client, or the provider itself. */
const OF_EVERYBODY = ['invalid_client', 'unauthorized_client', 'temporarily_unavailable', 'slow_down', 'server_error']
const DOWN = { status: 503, code: 'provider_unavailable' }

await test('eight users whose refreshes are refused keep no other user from being refreshed', async (t) => {
  const { user, call, refuses, refreshed } = await refusalWorld(t)
  const healthy = await user('healthy')
  const answers = [
    json({ error: 'interaction_required' }, 400),
    json({ error: 'token_inactive' }, 401),
    json({ error: 'interaction_required' }, 200),
  ]
  const refused = await Promise.all(
    Array.from({ length: 8 }, async (_, index) => {
      refuses.set(`refused-${index}`, answers[index % answers.length] ?? json({}))
      return user(`refused-${index}`)
    }),
  )
  for (const browser of refused) t.match(await call(browser), DOWN)
  t.equal((await call(healthy)).status, 200)
  t.same(refreshed.at(-1), 'healthy')
})

await test('a gateway that answers every refresh with a 4xx for ten minutes logs nobody out, whatever its code', async (t) => {
  const { user, call, refuses, pass, server, other } = await refusalWorld(t)
  for (const code of [...AT_ONCE, ...LASTING, ...NEVER, ...OF_EVERYBODY]) {
    const names = [1, 2, 3].map((index) => `${code}-${index}`)
    const browsers = await Promise.all(names.map((name) => user(name)))
    for (const name of names) refuses.set(name, json({ error: code }, code === 'invalid_token' ? 401 : 400))
    for (let minute = 0; minute < 10; minute += 2) {
      const answers = await Promise.all(
        browsers.map((browser, index) => call(browser, { server: index === 0 ? server : other })),
      )
      for (const answer of answers) t.match(answer, DOWN, `${code}, minute ${minute}`)
      await pass(120_000)
    }
    for (const name of names) refuses.delete(name)
    for (const browser of browsers) t.equal((await call(browser)).status, 200, `${code}: the session goes on`)
  }
})
