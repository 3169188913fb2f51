import { test } from 'tap'
import { callbackOf, clientBrowser, DEMO_USER, REDIRECT_URI } from './support/sandbox/oauth-client.ts'
import { providerOf } from './support/sandbox/world.ts'
import { until } from './support/time/until.ts'

await test('A login yields a token that is active until it is revoked', async (t) => {
  const { provider, client } = await providerOf(t)
  const browser = clientBrowser()
  const callback = await client.logIn(browser)
  t.equal(callback.get('state'), 'state-1234')
  const { body, token } = await client.exchange(callback)
  t.match(body, { token_type: 'Bearer', expires_in: 3600 })
  t.notOk('refresh_token' in body)
  t.same(await provider.isActive(token), { accountId: 'user-demo' })
  t.ok(provider.issued.has(token))
  t.equal(provider.tokenRequests(), 1)

  // The browser is still logged in to the provider, which shows no form.
  const again = await client.exchange(callbackOf(await browser.navigate(client.authorizationUrl())))
  await client.revoke(token)
  t.equal(await provider.isActive(token), undefined)
  t.ok(await provider.isActive(again.token), 'the token of the other login stays active')
  await provider.revokeAll()
  t.equal(await provider.isActive(again.token), undefined)
})

await test('A sign-up shows its attribution and creates a user; a known email address is refused with 422', async (t) => {
  const { provider, client } = await providerOf(t)
  const browser = clientBrowser()
  await client.logIn(browser)
  const partner = { sidc: '<b>guid</b>', utm_medium: 'affiliate', utm_source: 'CU1', utm_campaign: 'spring' }
  const signUp = client.authorizationUrl({ prompt: 'registration', ...partner })
  const page = await browser.navigate(signUp)
  t.match(page.body, '<h1>Sign up</h1>')
  t.match(page.body, '&lt;b&gt;guid')
  t.notMatch(page.body, '<b>guid')
  const person = { ...DEMO_USER, email: 'new@example.test' }
  const { token } = await client.exchange(callbackOf(await browser.submit(page, person)))
  t.match((await provider.isActive(token))?.accountId, /^user-[0-9a-f-]{36}$/, 'the token is that of the new user')
  t.match(provider.authorizations.at(-1), { prompt: 'registration', ...partner })

  const other = clientBrowser()
  const taken = await other.submit(await other.navigate(signUp), person)
  t.equal(taken.response.status, 422)
  const login = await other.navigate(client.authorizationUrl())
  const unknown = await other.submit(login, { ...DEMO_USER, email: 'nobody@example.test' })
  t.match(unknown.body, 'no account yet')
})

await test('A login with a wrong password is refused with 422, a login with the password of the sign-up is not', async (t) => {
  const { client } = await providerOf(t)
  const person = { ...DEMO_USER, email: 'New@example.test', password: ' pass word ' }
  const browser = clientBrowser()
  const signUp = await browser.navigate(client.authorizationUrl({ prompt: 'registration' }))
  t.equal(
    (await browser.submit(signUp, { ...person, password: '' })).response.status,
    422,
    'a sign-up needs a password',
  )
  callbackOf(await browser.submit(signUp, person))

  const other = clientBrowser()
  const login = await other.navigate(client.authorizationUrl())
  for (const password of ['pass word', '', 'any']) {
    const refused = await other.submit(login, { ...person, password })
    t.equal(refused.response.status, 422)
    t.match(refused.body, 'role="alert"')
    t.notMatch(refused.body, 'pass word', 'the page does not repeat a password')
  }
  t.match((await other.submit(login, { ...DEMO_USER, password: 'other' })).body, 'password is wrong')
  t.ok(callbackOf(await other.submit(login, { ...person, email: 'new@EXAMPLE.test' })).has('code'))
})

await test('A cancelled login redirects with access_denied', async (t) => {
  const { client } = await providerOf(t)
  const browser = clientBrowser()
  const page = await browser.navigate(client.authorizationUrl())
  const callback = callbackOf(await browser.submit(page, { action: 'cancel' }))
  t.match(Object.fromEntries(callback), { error: 'access_denied', state: 'state-1234' })
  t.notOk(callback.has('code'))

  // The back button shows the form again, but its login is over.
  const over = await browser.submit(page, { action: 'cancel' })
  t.equal(over.response.status, 400)
  t.match(over.body, `<a href="${new URL(REDIRECT_URI).origin}"`)
})

await test('Unknown clients, redirect URIs and code verifiers are refused', async (t) => {
  const { provider, client } = await providerOf(t)
  const browser = clientBrowser()
  for (const wrong of [{ client_id: 'other' }, { redirect_uri: `${REDIRECT_URI}/` }]) {
    const page = await browser.navigate(client.authorizationUrl(wrong))
    t.equal(page.response.status, 400)
    t.equal(page.url.origin, provider.url, 'the browser is not sent to an unregistered address')
    t.match(page.body, `<a href="${new URL(REDIRECT_URI).origin}"`, 'the page links to the registered application')
  }
  const callback = await client.logIn(browser)
  const wrongVerifier = await client.exchange(callback, { code_verifier: 'x'.repeat(43) })
  t.match(wrongVerifier, { status: 400, body: { error: 'invalid_grant' } })
  const wrongClient = await client.exchange(callback, { client_id: 'other' })
  t.match(wrongClient, { status: 401, body: { error: 'invalid_client' } })
})

await test('A replayed code or refresh token revokes every token that was issued for it', async (t) => {
  const { provider, client } = await providerOf(t, { refreshTokens: true })
  const callback = await client.logIn()
  const { token } = await client.exchange(callback)
  t.equal((await client.exchange(callback)).status, 400)
  t.equal(await provider.isActive(token), undefined)

  const { body } = await client.exchange(await client.logIn())
  const first = String(body['refresh_token'])
  const refreshed = await client.refresh(first)
  t.ok(await provider.isActive(refreshed.token))
  t.not(refreshed.body['refresh_token'], first)
  t.equal((await client.refresh(first)).body['error'], 'invalid_grant')
  t.equal(await provider.isActive(refreshed.token), undefined)
})

await test('An access token expires', async (t) => {
  // Its end is in whole seconds, so that of one second could have passed already.
  const { provider, client } = await providerOf(t, { accessTokenSeconds: 3 })
  const { token } = await client.exchange(await client.logIn())
  t.ok(await provider.isActive(token))
  await until(async () => (await provider.isActive(token)) === undefined)
})

await test('The pages of the provider have a stylesheet and an icon, which their policy allows', async (t) => {
  const { provider, client } = await providerOf(t)
  const { response, body } = await clientBrowser().navigate(client.authorizationUrl())
  const policy = response.headers.get('content-security-policy')
  for (const [link, directive, type] of [
    ['rel="stylesheet" href="/sandbox.css"', "style-src 'self'", 'text/css'],
    ['rel="icon" href="/sandbox.svg"', "img-src 'self'", 'image/svg+xml'],
  ] as const) {
    t.match(body, link)
    t.match(policy, directive)
    const file = await fetch(provider.url + /href="(.*)"/.exec(link)?.[1])
    t.equal(file.headers.get('content-type'), type)
    t.ok((await file.text()).length > 100)
  }
})
