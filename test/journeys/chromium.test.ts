import { test, type Test } from 'tap'
import { testBalancer } from '../support/deployment/balancer.ts'
import { PageRecord, sendForm, sessionIs, testChromium } from '../support/browser/chromium.ts'
import { DEMO_PAGE } from '../support/browser/demo-page.ts'
import { huntTokens } from '../support/telemetry/token-hunt.ts'
import { freePort } from '../../sandbox/listening.ts'
import { type World, startWorld } from '../support/world.ts'

/** Two instances on one Redis behind a balancer that alternates between them. */
async function twoInstances(t: Test): Promise<World & { url: string; chosen: readonly number[] }> {
  const port = await freePort()
  const settings = { PUBLIC_URL: `http://localhost:${port}`, STATIC_DIR: DEMO_PAGE }
  const world = await startWorld(t, { settings, redis: true })
  const second = await world.instance()
  const { url, chosen } = await testBalancer(t, port, [world.server.port, second.port])
  return { ...world, url, chosen }
}

await test('A user signs up, watches the price, trades and logs out, and no token reaches the page', async (t) => {
  const { url, chosen, provider, upstream } = await twoInstances(t)
  const context = await testChromium(t)
  const record = new PageRecord(context)
  const page = await context.newPage()
  const byTestId = (id: string) => page.getByTestId(id)

  await page.goto(url)
  // The browser discards the body of a script that it still loads when the page is left.
  await page.locator('#chart canvas').first().waitFor()
  await byTestId('partner-signup').click()
  await sendForm(page, 'trader@example.test')

  await byTestId('account-row').first().waitFor()
  t.equal(new URL(page.url()).origin, url)
  t.match(provider.authorizations.at(-1), { prompt: 'registration', utm_medium: 'affiliate' })

  const price = await byTestId('price').textContent()
  await byTestId('price')
    .filter({ hasNotText: price ?? '' })
    .waitFor()

  await byTestId('trade-buy').click()
  await byTestId('trade-status')
    .filter({ hasText: /won|lost/ })
    .waitFor()
  t.match(upstream.sockets(), { public: 1, demo: 1 })

  const cookies = await context.cookies(url)
  t.ok(
    cookies.every(({ httpOnly, secure }) => httpOnly && secure),
    'every cookie is HttpOnly and Secure',
  )
  const sessionCookie = cookies.find(({ name }) => name === '__Host-session')
  t.match(sessionCookie, { sameSite: 'Strict', path: '/', domain: 'localhost' })

  const accountId = (await page.locator('[data-account-id]').first().getAttribute('data-account-id')) ?? ''
  const before = await record.places(page)
  await byTestId('logout').click()
  await sessionIs(page, 'anonymous')
  t.same(await context.cookies(url), [], 'no cookie is left')

  const places = [...before, ...(await record.places(page))]
  const secrets = [...provider.issued, ...upstream.issued]
  t.ok(secrets.length >= 4, `${secrets.length} codes, tokens and one-time passwords were issued`)
  t.same(record.unread, [], 'every body was read')
  t.same(huntTokens(places, secrets), [], `no secret in ${places.length} places`)
  // The account stands where a token could leak to.
  const found = new Set(huntTokens(places, [accountId]).map(({ where }) => where.split(' ', 1)[0]))
  for (const kind of ['body', 'frame', 'url', 'document']) t.ok(found.has(kind), `${kind}: what is there is found`)
  t.comment(`searched ${places.length} places for ${secrets.length} secrets`)
  t.ok(
    chosen.every((count) => count > 3),
    `both instances served requests (${chosen.join(' and ')})`,
  )
})
