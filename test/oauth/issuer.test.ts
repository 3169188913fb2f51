import { test } from 'tap'
import { startLogin, scripted, type TokenEndpoint } from '../support/login/token-endpoint.ts'
import { startWorld, type World } from '../support/world.ts'

const ISSUER = 'https://login.example/tenant/'

/** Where a login ends whose callback has these `iss`. */
async function outcome(
  { browser, server, ...world }: World<'none', TokenEndpoint>,
  issuers: readonly string[],
  answer = 'code=x',
) {
  const { state, authorize } = await startLogin({ browser, server, ...world })
  const query = new URLSearchParams(answer)
  for (const issuer of issuers) query.append('iss', issuer)
  query.set('state', state)
  const arrival = await browser.navigate(`${server.url}/auth/callback?${query.toString()}`, { from: authorize })
  return arrival.url.searchParams.get('auth_error')
}

await test('ISSUER: a callback from another issuer fails before its code is sent anywhere', async (t) => {
  const world = await startWorld(t, { provider: scripted, settings: { ISSUER, AUTH_STARTS_PER_MINUTE: '0' } })
  const { provider } = world
  t.equal(await outcome(world, [ISSUER]), null)
  t.equal(await outcome(world, []), null, 'iss may be absent')
  t.equal(provider.forms.length, 2)
  for (const wrong of [
    [ISSUER.slice(0, -1)],
    [`${ISSUER}/`],
    [ISSUER.toUpperCase()],
    [provider.url],
    ['https://attacker.example/'],
    [''],
    [ISSUER, ISSUER],
    [ISSUER, 'https://attacker.example/'],
    ['', ISSUER],
  ]) {
    t.equal(await outcome(world, wrong), 'login_failed', wrong.join(' and '))
  }
  t.equal(
    await outcome(world, ['https://attacker.example/'], 'error=access_denied'),
    'login_failed',
    'in an error, too',
  )
  t.equal(provider.forms.length, 2, 'no code was exchanged')
})

await test('ISSUER_REQUIRED: a callback without iss fails before its code is sent anywhere', async (t) => {
  const world = await startWorld(t, {
    provider: scripted,
    settings: { ISSUER, ISSUER_REQUIRED: 'true', AUTH_STARTS_PER_MINUTE: '0' },
  })
  t.equal(await outcome(world, []), 'login_failed')
  t.equal(await outcome(world, [], 'error=access_denied'), 'login_failed')
  t.equal(world.provider.forms.length, 0)
  t.equal(await outcome(world, [ISSUER], 'error=access_denied'), 'access_denied')
  t.equal(await outcome(world, [ISSUER]), null)
})
