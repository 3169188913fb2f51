import { test } from 'tap'
import { samplesOf } from '../support/telemetry/metrics.ts'
import { rawUpstream } from '../support/upstream/raw-upstream.ts'
import { html, json, tokens, scripted } from '../support/login/token-endpoint.ts'
import { takenPort } from '../support/server/http-server.ts'
import { until } from '../support/time/until.ts'
import { startWorld } from '../support/world.ts'

const REQUESTS = 'bff_provider_requests_total'

await test('bff_provider_requests_total counts exchanges by outcome, and their duration is measured', async (t) => {
  const { provider, server, logIn, startLogin } = await startWorld(t, { provider: scripted })
  for (const [behaviour, outcome] of [
    [tokens(), 'ok'],
    [json({ error: 'invalid_grant' }, 400), 'refused'],
    [json({ error: 'slow_down' }, 429), 'busy'],
    [html(502), 'failed'],
    [html(), 'failed'],
  ] as const) {
    const labels = `request="exchange",outcome="${outcome}"`
    const before = (await samplesOf(server.opsUrl, REQUESTS)).get(labels) ?? 0
    provider.behaviour = behaviour
    await logIn()
    t.equal((await samplesOf(server.opsUrl, REQUESTS)).get(labels), before + 1, outcome)
  }
  provider.behaviour = (_request, response) => response.destroy()
  await logIn()
  t.equal((await samplesOf(server.opsUrl, REQUESTS)).get('request="exchange",outcome="unreachable"'), 1)

  const counted = async (): Promise<number | undefined> =>
    (await samplesOf(server.opsUrl, 'bff_provider_request_duration_seconds_count')).get('request="exchange"')
  t.equal(await counted(), 6)
  const cancelled = await startLogin()
  await cancelled.finish({ error: 'access_denied' })
  t.equal(await counted(), 6, 'a cancelled login sends no request to the provider')
})

await test('bff_provider_requests_total counts refreshes and revocations separately', async (t) => {
  const upstream = await rawUpstream(t)
  const silent = await takenPort(t)
  for (const [revocation, revoked] of [
    [{}, 'ok'],
    [{ REVOCATION_URL: `http://127.0.0.1:${silent}/revoke` }, 'timeout'],
  ] as const) {
    const world = await startWorld(t, { provider: scripted, settings: { API_URL: upstream.url, ...revocation } })
    const { provider, browser, server } = world
    provider.behaviour = tokens({ expires_in: 0.001, refresh_token: 'the-first-refresh-token' })
    await world.logIn()
    provider.behaviour = tokens()
    browser.page = new URL(server.url)
    await browser.fetch('/api/account/v1/nickname', { headers: { 'x-csrf': '1' } })
    t.equal((await samplesOf(server.opsUrl, REQUESTS)).get('request="refresh",outcome="ok"'), 1)
    t.equal((await world.logOut()).status, 204)
    await until(
      async () => (await samplesOf(server.opsUrl, REQUESTS)).get(`request="revoke",outcome="${revoked}"`) === 2,
      `both tokens: ${revoked}`,
    )
  }
})
