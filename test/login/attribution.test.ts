import { test } from 'tap'
import { startLogin, scripted, type TokenEndpoint } from '../support/login/token-endpoint.ts'
import { logIn } from '../support/parts.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'
import { startWorld, type World } from '../support/world.ts'

const SIDC = '0f8fad5b-d9cb-469f-a165-70867728950e'
const LINK = {
  sidc: SIDC,
  utm_campaign: 'spring sale +1',
  utm_medium: 'affiliate',
  utm_source: 'CU12345',
}
const PARTNER = new URL('https://partner.example/')

function signup(values: Record<string, string> = {}): string {
  return `/auth/signup?${new URLSearchParams(values).toString()}`
}

/** Checks a link with HEAD. */
async function checkLink(url: string): Promise<{ status: number; outcome: string | null; problems: string | null }> {
  const { status, headers } = await fetch(url, { method: 'HEAD', redirect: 'manual' })
  return { status, outcome: headers.get('x-attribution'), problems: headers.get('x-attribution-problems') }
}

/** The attribution in the authorize URL. */
function sentAttribution(authorize: URL): Record<string, string> {
  const all = Object.entries(Object.fromEntries(authorize.searchParams))
  return Object.fromEntries(all.filter(([name]) => name === 'sidc' || name.startsWith('utm_')))
}

async function metric({ server }: World<'none', TokenEndpoint>, line: RegExp): Promise<number> {
  const text = await (await fetch(`${server.opsUrl}/metrics`)).text()
  return Number(line.exec(text)?.[1] ?? 0)
}

await test('HEAD /auth/signup: 200 with the check result of a link, and no login is started', async (t) => {
  const { server } = await startWorld(t, { provider: scripted })
  const link = (values: Record<string, string>): string => server.url + signup(values)
  t.same(await checkLink(link(LINK)), { status: 200, outcome: 'complete', problems: null })
  t.same(await checkLink(link({ ...LINK, sidc: SIDC.toUpperCase(), return_to: '/x', other: 'y' })), {
    status: 200,
    outcome: 'complete',
    problems: null,
  })
  t.same(await checkLink(link({})), { status: 200, outcome: 'none', problems: null })
  t.same(await checkLink(link({ return_to: '/x' })), { status: 200, outcome: 'none', problems: null })
  const problems = async (values: Record<string, string>): Promise<string | null> => {
    const { outcome, problems } = await checkLink(link(values))
    t.equal(outcome, 'partial')
    return problems
  }
  const { utm_medium: _, ...rest } = LINK
  t.equal(await problems({ ...rest, sidc: 'x' }), 'sidc=format,utm_medium=missing')
  for (const sidc of ['', `{${SIDC}}`, `${SIDC}0`, ` ${SIDC}`, SIDC.replaceAll('-', ''), SIDC.replace('0', 'g')]) {
    t.equal(await problems({ ...LINK, sidc }), 'sidc=format', sidc)
  }
  for (const medium of ['Affiliate', 'affiliates', ' affiliate', 'email', '']) {
    t.equal(await problems({ ...LINK, utm_medium: medium }), 'utm_medium=format', medium)
  }
  for (const text of ['', 'x'.repeat(129), 'ä', 'a\nb', 'a\tb', '\u0000', 'a\r\nX-Injected: 1']) {
    t.equal(await problems({ ...LINK, utm_source: text }), 'utm_source=format', JSON.stringify(text))
    t.equal(await problems({ ...LINK, utm_campaign: text }), 'utm_campaign=format', JSON.stringify(text))
  }
  t.equal((await checkLink(link({ ...LINK, utm_source: 'x'.repeat(128), utm_campaign: ' ~' }))).outcome, 'complete')
  const twice = await checkLink(`${link(LINK)}&sidc=${SIDC}&utm_source=a`)
  t.equal(twice.problems, 'sidc=repeated,utm_source=repeated')

  const response = await fetch(link(LINK), { method: 'HEAD', redirect: 'manual' })
  t.equal(response.headers.get('location'), null)
  t.same(response.headers.getSetCookie(), [])
  t.equal(response.headers.get('cache-control'), 'no-store')
})

await test('GET /auth/signup: 303 passes a complete link to the provider and remembers it in a cookie', async (t) => {
  const world = await startWorld(t, { provider: scripted })
  const { authorize, arrival } = await world.startLogin(signup({ ...LINK, return_to: '/x' }))
  t.same(sentAttribution(authorize), LINK)
  t.equal(authorize.searchParams.get('prompt'), 'registration')
  t.equal(arrival.hops[0]?.headers.get('x-attribution'), 'complete')
  t.equal(arrival.hops[0]?.headers.get('x-attribution-problems'), null)
  const cookie = arrival.hops[0]?.headers.getSetCookie().find((line) => line.startsWith('__Host-attribution='))
  t.match(cookie, /; Max-Age=86400; Path=\/; HttpOnly; Secure; SameSite=Lax$/)
  t.notMatch(cookie, /domain/i)
})

await test('GET /auth/signup: 303 without the parameters that are wrong', async (t) => {
  const world = await startWorld(t, { provider: scripted })
  const { authorize, arrival } = await world.startLogin(
    `${signup({ ...LINK, sidc: 'x' })}&utm_source=twice&__proto__=x&sidc[a]=b&utm_medium[]=x`,
  )
  t.same(sentAttribution(authorize), { utm_campaign: LINK.utm_campaign, utm_medium: 'affiliate' })
  t.equal(arrival.hops[0]?.headers.get('x-attribution'), 'partial')
  t.equal(arrival.hops[0]?.headers.get('x-attribution-problems'), 'sidc=format,utm_source=repeated')
  t.same(world.browser.named('__Host-attribution'), [], 'only a complete link is remembered')
})

await test('GET /auth/login: 303 without attribution', async (t) => {
  const world = await startWorld(t, { provider: scripted })
  await world.startLogin(signup(LINK))
  const { authorize, arrival } = await world.startLogin(signup(LINK).replace('signup', 'login'))
  t.same(sentAttribution(authorize), {})
  t.notOk(authorize.searchParams.has('prompt'))
  t.equal(arrival.hops[0]?.headers.get('x-attribution'), null)
})

await test('A cancelled sign-up that is tried again keeps its partner until it is completed', async (t) => {
  const { browser, server, provider } = await startWorld(t)
  const url = server.url
  const form = await browser.navigate(url + signup(LINK), { from: PARTNER })
  const cancelled = await browser.submit(form, { action: 'cancel' })
  t.equal(cancelled.url.search, '?auth_error=access_denied&flow=signup&return_to=%2F')
  t.equal(browser.named('__Host-attribution').length, 1)

  await logIn(browser, url, 'new@example.test')
  t.match(provider.authorizations.at(-1), { ...LINK, prompt: 'registration' })
  t.same(browser.named('__Host-attribution'), [], 'a completed sign-up deletes the cookie')
  const metrics = await (await fetch(`${server.opsUrl}/metrics`)).text()
  t.match(metrics, /bff_signups_completed_total\{attributed="true"\} 1\n/)
  t.notMatch(metrics, /CU12345|spring/, "a partner's values are not labels")

  await logIn(browser, url, 'another@example.test')
  t.notOk('sidc' in (provider.authorizations.at(-1) ?? {}))
})

await test('GET /auth/signup: the remembered link replaces a missing one and is never merged with another', async (t) => {
  const { browser, startLogin } = await startWorld(t, { provider: scripted })
  await startLogin(signup(LINK))
  const again = await startLogin(signup())
  t.same(sentAttribution(again.authorize), LINK)
  t.equal(again.arrival.hops[0]?.headers.get('x-attribution'), 'complete')
  const partial = await startLogin(signup({ utm_source: 'other' }))
  t.same(sentAttribution(partial.authorize), { utm_source: 'other' })
  t.equal(partial.arrival.hops[0]?.headers.get('x-attribution'), 'partial')
  const wrong = await startLogin(signup({ sidc: 'wrong' }))
  t.same(sentAttribution(wrong.authorize), {})
  const other = { ...LINK, utm_source: 'CU99999', utm_campaign: '"\\;=,' }
  await startLogin(signup(other))
  t.same(sentAttribution((await startLogin(signup())).authorize), other, 'the last complete link is remembered')
  await (await startLogin()).finish()
  t.equal(browser.named('__Host-attribution').length, 1, 'a login neither uses nor deletes it')
  await (await startLogin(signup())).finish({ error: 'access_denied' })
  t.equal(browser.named('__Host-attribution').length, 1, 'nor does a failure')
})

await test('GET /auth/signup: a link that misspells its partner is not tracked for the remembered one', async (t) => {
  const { startLogin } = await startWorld(t, { provider: scripted })
  await startLogin(signup(LINK))
  const other = new URLSearchParams({ ...LINK, utm_source: 'CU99999' }).toString()
  for (const query of [other.toUpperCase(), `a=b&amp;${other.replaceAll('&', '&amp;')}`, encodeURIComponent(other)]) {
    const { authorize, arrival } = await startLogin(`/auth/signup?${query}`)
    t.same(sentAttribution(authorize), {}, query)
    t.equal(arrival.hops.find(({ status }) => status === 303)?.headers.get('x-attribution'), 'none')
  }
  // A page leads to a sign-up and back to where it was opened, with what stands in its own address.
  const { authorize } = await startLogin(`/auth/signup?return_to=${encodeURIComponent(`/?${other}`)}`)
  t.same(sentAttribution(authorize), LINK)
})

await test('GET /auth/signup: 303 without attribution if the remembered link is forged, repeated or expired', async (t) => {
  const { browser, server, startLogin } = await startWorld(t, { provider: scripted })
  await startLogin(signup(LINK))
  const [{ value } = { value: '' }] = browser.named('__Host-attribution')
  const ask = async (cookie: string): Promise<Record<string, string>> => {
    const response = await fetch(server.url + signup(), { redirect: 'manual', headers: { cookie } })
    t.equal(response.status, 303)
    return sentAttribution(new URL(response.headers.get('location') ?? ''))
  }
  t.same(await ask(`__Host-attribution=${value}`), LINK)
  const [text = '', signature] = value.split('.')
  const forged = Buffer.from(Buffer.from(text, 'base64url').toString().replace('CU12345', 'CU66666')).toString(
    'base64url',
  )
  t.same(await ask(`__Host-attribution=${forged}.${signature}`), {})
  t.same(await ask(`__Host-attribution=${value}; __Host-attribution=${value}`), {})
  for (const odd of ['', '.', 'x', 'x.y', '%', `${value}x`]) t.same(await ask(`__Host-attribution=${odd}`), {}, odd)
  timeAhead(t)(86_401_000)
  t.same(await ask(`__Host-attribution=${value}`), {}, 'the server enforces the lifetime of the cookie')
})

await test('ATTRIBUTION_TTL_SECONDS=0: GET /auth/signup neither sets nor reads the cookie', async (t) => {
  const remembering = await startWorld(t, { provider: scripted })
  await startLogin(remembering, signup(LINK))
  const world = await startWorld(t, { provider: scripted, settings: { ATTRIBUTION_TTL_SECONDS: '0' } })
  const { authorize, arrival } = await world.startLogin(signup(LINK))
  t.same(sentAttribution(authorize), LINK)
  t.notMatch(arrival.hops[0]?.headers.getSetCookie().join(), /attribution/)
  const other = { browser: remembering.browser, server: world.server }
  t.same(sentAttribution((await startLogin(other, signup())).authorize), {})
})

await test('ATTRIBUTION_TTL_SECONDS is the Max-Age of the cookie', async (t) => {
  const world = await startWorld(t, { provider: scripted, settings: { ATTRIBUTION_TTL_SECONDS: '120' } })
  await world.startLogin(signup(LINK))
  t.equal(world.browser.named('__Host-attribution')[0]?.maxAgeSeconds, 120)
})

await test('GET /auth/signup: try_later while the store is down, and the partner is remembered', async (t) => {
  const world = await startWorld(t, { provider: scripted, redis: true })
  await world.redis?.close()
  const arrival = await world.browser.navigate(world.server.url + signup(LINK))
  t.equal(arrival.url.searchParams.get('auth_error'), 'try_later')
  t.equal(world.browser.named('__Host-attribution').length, 1)
  t.same(world.browser.named('__Host-login'), [])
})

await test('bff_attribution_links_total counts links by outcome, and navigations apart from bare fetches', async (t) => {
  const world = await startWorld(t, { provider: scripted })
  const { server } = world
  await world.startLogin(signup(LINK))
  await world.startLogin(signup({ sidc: SIDC }))
  await (await world.startLogin(signup({ sidc: 'x' }))).finish()
  await fetch(server.url + signup(LINK), { redirect: 'manual' })
  await checkLink(server.url + signup(LINK))
  const links = (outcome: string, by: string): Promise<number> =>
    metric(world, new RegExp(`bff_attribution_links_total\\{outcome="${outcome}",by="${by}"\\} (\\d+)`))
  t.equal(await links('complete', 'navigation'), 1)
  t.equal(await links('partial', 'navigation'), 2)
  t.equal(await links('complete', 'fetch'), 1, 'a check with HEAD is not counted')
  t.equal(await metric(world, /bff_signups_completed_total\{attributed="false"\} (\d+)/), 1)
})
