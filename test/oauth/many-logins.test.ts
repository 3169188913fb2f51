import { test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { Provider } from '../../src/oauth/provider.ts'
import { json, tokenEndpoint } from '../support/login/token-endpoint.ts'
import { ALONE } from '../support/server/settings.ts'
import { until } from '../support/time/until.ts'

const VERIFIER = 'v'.repeat(43)

await test('The requests of logins to the provider use up a quarter of the file descriptors at most; the next login is told to try later', async (t) => {
  const endpoint = await tokenEndpoint(t)
  const answers: (() => unknown)[] = []
  endpoint.behaviour = (...exchange) => void answers.push(() => json({ error: 'invalid_grant' }, 400)(...exchange))
  const { oauth } = readConfig({ ...ALONE, AUTH_URL: endpoint.url, PAR_URL: `${endpoint.url}/par` })
  const provider = new Provider(oauth, undefined, undefined, 11)
  t.teardown(() => provider.close())
  const exchange = () =>
    provider.exchange('code=x&state=the-state', {
      state: 'the-state',
      verifier: VERIFIER,
      nonce: undefined,
      startedAt: Date.now(),
    })
  const push = () => provider.authorizationUrl({ state: 'the-state', verifier: VERIFIER, signup: undefined })
  const [login, start] = [exchange(), push()]
  await until(() => answers.length === 2, 'an exchange and a pushed request are under way')
  t.match(await exchange(), { is: 'unavailable', code: 'try_later' })
  t.match(await push(), { is: 'unavailable', code: 'try_later' })
  t.equal(endpoint.forms.length, 2, 'neither was sent')
  for (const answer of answers.splice(0)) answer()
  t.match(await login, { is: 'refused', code: 'invalid_grant' })
  t.match(await start, { is: 'refused' })
  const next = exchange()
  await until(() => answers.length === 1)
  answers[0]?.()
  t.match(await next, { is: 'refused', code: 'invalid_grant' }, 'whoever comes later is served')
})
