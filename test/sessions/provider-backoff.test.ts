import { setTimeout as delay } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { html, json, logInThere, tokens, scripted, type TokenEndpoint } from '../support/login/token-endpoint.ts'
import { until } from '../support/time/until.ts'
import { startWorld, type World } from '../support/world.ts'
import { sideBySide } from '../support/time/side-by-side.ts'

/** A token lifetime that is over at once. */
const OVER = 0.001
const USERS = 5

interface SickProvider extends Omit<World<'none', TokenEndpoint>, 'call'> {
  /** The statuses of calls that one user after the other makes. */
  readonly call: (browser: JarBrowser) => Promise<Response>
  readonly browsers: readonly JarBrowser[]
  /** How many refresh requests the provider has received. */
  readonly refreshes: () => number
}

/** Users who are logged in, and whose tokens have all expired. */
async function usersWithOldTokens(t: Test): Promise<SickProvider> {
  const world = await startWorld(t, { provider: scripted, redis: true })
  world.provider.behaviour = tokens({ expires_in: OVER, refresh_token: 'a-refresh-token' })
  const browsers = Array.from({ length: USERS }, () => new JarBrowser())
  for (const browser of browsers) await world.visitor(browser).logIn()
  const page = { headers: { 'x-csrf': '1' } }
  return {
    ...world,
    browsers,
    call: (browser) => browser.fetch('/api/trading/v1/options/accounts', page),
    refreshes: () => world.provider.forms.filter((form) => form.get('grant_type') === 'refresh_token').length,
  }
}

await test('a proxy in front of the provider that refuses refreshes with 401 ends no session', async (t) => {
  const { browsers, provider, call } = await usersWithOldTokens(t)
  const [browser] = browsers as [JarBrowser]
  provider.behaviour = html(401)
  const refused = await call(browser)
  t.equal(refused.status, 503)
  t.match(await refused.json(), { code: 'provider_unavailable' })
  provider.behaviour = tokens({ refresh_token: 'another-refresh-token' })
  // There is no upstream.
  await until(async () => (await call(browser)).status === 502, 'the session goes on')
})

await sideBySide({
  'refreshes pause while the provider fails, and every session goes on once it works': async (t) => {
    const world = await usersWithOldTokens(t)
    const { browsers, provider, call, refreshes, metric } = world
    provider.behaviour = json('', 503)
    const outcomes = new Set<string>()
    let calls = 0
    const stopAt = performance.now() + 4000
    await Promise.all(
      browsers.map(async (browser) => {
        while (performance.now() < stopAt) {
          const response = await call(browser)
          const { code } = (await response.json()) as { code?: string }
          const hasRetryAfter = Number(response.headers.get('retry-after')) >= 1
          outcomes.add(`${response.status} ${code}${hasRetryAfter ? ', to be repeated later' : ''}`)
          calls++
          await delay(20)
        }
      }),
    )
    t.same([...outcomes], ['503 provider_unavailable, to be repeated later'])
    t.ok(calls > 50, `${calls} calls`)
    // Five until the provider counts as unhealthy, then one after about one second and one after three.
    t.ok(refreshes() <= USERS + 3, `${refreshes()} refreshes`)
    t.equal((await metric('bff_provider_circuit_open')).get(''), 1)
    t.ok(Number((await metric('bff_token_refreshes_held_back_total')).get('by="provider"')) > 0)

    provider.behaviour = tokens({ refresh_token: 'another' })
    for (const browser of browsers) {
      // There is no upstream.
      await until(async () => (await call(browser)).status === 502, 'the session goes on')
    }
    t.equal((await metric('bff_provider_circuit_open')).get(''), 0)
  },

  'a provider that does not respond delays no call for more than five seconds': async (t) => {
    const { browsers, provider, call } = await usersWithOldTokens(t)
    let hungUp = 0
    provider.behaviour = (_request, response) => response.on('close', () => hungUp++)
    const responses = await Promise.all(browsers.map(call))
    t.equal(hungUp, 0, 'the refreshes go on')
    for (const response of responses) {
      t.equal(response.status, 503)
      t.match(await response.json(), { code: 'provider_unavailable' })
    }
    const again = await Promise.all(browsers.map(call))
    for (const { status } of again) t.equal(status, 503)
    t.equal(hungUp, 0, 'a later call does not wait at all')
  },
})

await test('a login succeeds while refreshes pause, and ends the pause', async (t) => {
  const { browsers, provider, call, metric, server } = await usersWithOldTokens(t)
  provider.behaviour = json('', 503)
  for (const browser of browsers) await call(browser)
  t.equal((await metric('bff_provider_circuit_open')).get(''), 1)
  provider.behaviour = tokens({ refresh_token: 'another' })
  t.equal((await logInThere({ server, browser: new JarBrowser() })).url.pathname, '/')
  t.equal((await metric('bff_provider_circuit_open')).get(''), 0)
  for (const browser of browsers) t.equal((await call(browser)).status, 502, 'no session waits any longer')
})

await test('a 429 of the provider delays the next refresh of its session for as long as it says, and of no other', async (t) => {
  const { browsers, provider, call, refreshes, metric } = await usersWithOldTokens(t)
  const [first, second, ...others] = browsers as [JarBrowser, JarBrowser, ...JarBrowser[]]
  provider.behaviour = json('', 429, { 'retry-after': '20' })
  for (let times = 0; times < 2; times++) {
    const response = await call(first)
    t.equal(response.status, 503)
    t.ok(Number(response.headers.get('retry-after')) >= 18)
  }
  t.equal(refreshes(), 1)
  provider.behaviour = json('', 429)
  t.equal((await call(second)).headers.get('retry-after'), '10')
  // The browsers have one address, and nothing else tells users apart here: many sessions of one user pause nobody else.
  provider.behaviour = tokens({ refresh_token: 'another' })
  for (const browser of others) t.equal((await call(browser)).status, 502, 'there is no upstream')
  t.equal((await metric('bff_provider_circuit_open')).get(''), 0)
})
