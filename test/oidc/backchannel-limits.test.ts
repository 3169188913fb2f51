import { test } from 'tap'
import { epoch, issuerKey, oidcWorld, sign } from '../support/login/oidc-world.ts'
import { isLoggedIn } from '../support/login/token-endpoint.ts'
import { testServer } from '../support/server/test-server.ts'
import { samplesOf } from '../support/telemetry/metrics.ts'
import { until } from '../support/time/until.ts'

await test('POST /auth/backchannel-logout: 503 without keys, and a rotated key is fetched once a minute, apart from logins', async (t) => {
  const world = await oidcWorld(t)
  const { keys, server } = world
  const published = keys.responses['/jwks']
  keys.responses['/jwks'] = (_request, response) => response.writeHead(503).end()
  const away = await world.postLogout(await world.logoutToken({ sub: 'ada' }))
  t.match([away.status, away.headers.get('retry-after')], [503, /^\d+$/])
  t.match(await away.json(), { code: 'provider_unavailable' })
  await world.postLogout(await world.logoutToken({ sub: 'ada' }))
  t.equal(keys.requests.length, 1, 'strangers cause one request a second at most')
  keys.responses['/jwks'] = published ?? (() => undefined)
  const { browser } = await world.user('ada', { sid: 's1', iat: epoch(-5) })
  t.equal(keys.requests.length, 2, 'a login asks at once')

  const second = issuerKey('second')
  const token = (key: typeof second) => sign(key, world.logoutClaims({ sid: 's1' }))
  t.equal((await world.postLogout(await token(issuerKey('made-up')))).status, 400)
  t.equal(keys.requests.length, 3, 'a stranger has spent the request of this minute')
  world.publish(second)
  const spent = await world.postLogout(await token(second))
  t.match([spent.status, spent.headers.get('retry-after')], [503, /^\d+$/], 'never a false 200')
  t.equal(keys.requests.length, 3)
  t.ok(await isLoggedIn(browser, server.url))
  world.key = second
  await world.user('bob')
  t.equal(keys.requests.length, 4, 'logins have an allowance of their own')
  t.equal((await world.postLogout(await token(second))).status, 200)
  t.notOk(await isLoggedIn(browser, server.url))
  t.match(
    await samplesOf(server.opsUrl, 'bff_backchannel_logouts_total'),
    new Map([
      ['outcome="ended"', 1],
      ['outcome="false"', 1],
      ['outcome="keys_away"', 3],
    ]),
  )
})

await test('POST /auth/backchannel-logout: while the keys cannot be had, no token counts as false', async (t) => {
  const world = await oidcWorld(t)
  const published = world.keys.responses['/jwks']
  world.keys.responses['/jwks'] = (_request, response) => response.writeHead(503).end()
  const statuses: number[] = []
  for (let count = 0; count < 15; count++) {
    statuses.push((await world.postLogout(await world.logoutToken({ sub: 'ada' }))).status)
  }
  t.same(new Set(statuses), new Set([503]))

  const { keys } = world
  const failing = keys.responses['/jwks']
  keys.responses['/jwks'] = published ?? (() => undefined)
  await world.user('ada')
  keys.responses['/jwks'] = failing ?? (() => undefined)
  const rotated = issuerKey('rotated')
  const late: number[] = []
  for (let count = 0; count < 15; count++) {
    late.push((await world.postLogout(await sign(rotated, world.logoutClaims({ sub: 'ada' })))).status)
  }
  t.same(new Set(late), new Set([503]), 'nor does one whose key may be among those that cannot be had')
})

await test('POST /auth/backchannel-logout: an address with ten false tokens in a second gets 429, unless it has sent a valid one', async (t) => {
  const world = await oidcWorld(t, { redis: true, settings: { TRUST_PROXY: '1' } })
  const post = async (from: string, token: string, server = world.server): Promise<Response> =>
    fetch(`${server.url}/auth/backchannel-logout`, {
      method: 'POST',
      headers: { 'x-forwarded-for': from },
      body: new URLSearchParams({ logout_token: token }),
    })
  const valid = await world.logoutToken({ sub: 'ada' })
  // Two bursts, since one may meet the end of a second.
  const burst = async (from: string, server = world.server, token = 'false'): Promise<number[]> => {
    const responses = await Promise.all(Array.from({ length: 60 }, () => post(from, token, server)))
    const limited = responses.find(({ status }) => status === 429)
    if (limited !== undefined) t.match(limited.headers.get('retry-after'), /^\d+$/)
    return responses.map(({ status }) => status)
  }
  const strangers = [...(await burst('192.0.2.1')), ...(await burst('192.0.2.1'))]
  t.ok(strangers.includes(429))
  t.ok(strangers.filter((status) => status === 400).length >= 10)
  const forged = `${valid.slice(0, valid.lastIndexOf('.') + 1)}${'A'.repeat(342)}`
  const foreign = await sign(issuerKey('made-up'), world.logoutClaims({ sub: 'ada' }))
  for (const [from, token] of [
    ['192.0.2.3', forged],
    ['192.0.2.4', foreign],
  ] as const) {
    const statuses = [...(await burst(from, world.server, token)), ...(await burst(from, world.server, token))]
    t.ok(statuses.filter((status) => status !== 429).length <= 40, `at the same moment, too: ${statuses.join()}`)
  }
  t.equal((await post('192.0.2.2', valid)).status, 200, 'others are not concerned')
  for (const odd of ['unknown', 'fe80::1%eth0', '::ffff:192.0.2.7', '_hidden']) {
    t.equal((await post(odd, valid)).status, 200, odd)
  }
  t.notOk([...(await burst('192.0.2.2'))].includes(429), 'an address of the provider may err more often')
  const late = await testServer(t, {
    ...world.settings,
    TRUST_PROXY: '1',
    REDIS_URL: world.redis?.url ?? '',
  })
  await until(
    async () => (await burst('192.0.2.2', late)).every((status) => status === 400),
    'an instance that starts later knows it',
  )
  t.match(
    world.server.log.find(({ audit }) => audit === 'refused'),
    { code: 'rate_limited', route: '/auth/backchannel-logout' },
  )
})
