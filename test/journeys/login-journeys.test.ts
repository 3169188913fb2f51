import type { Page } from 'puppeteer-core'
import { test } from 'tap'
import { allow, browsersOr, follow, sessionIs, testWindow } from '../support/browser/browsers.ts'
import { DEMO_PAGE } from '../support/browser/demo-page.ts'
import { startWorld } from '../support/world.ts'

/** Collects the callback URLs that the page requests from now on. */
function callbacks(page: Page): string[] {
  const seen: string[] = []
  page.on('request', (request) => {
    if (request.url().includes('/auth/callback?')) seen.push(request.url())
  })
  return seen
}

function hasError(page: Page): boolean {
  return new URL(page.url()).searchParams.has('auth_error')
}

for (const name of browsersOr('firefox')) {
  await test(`${name}: two tabs log in at once, and a repeated callback keeps the user logged in`, async (t) => {
    const { server, provider } = await startWorld(t, { settings: { STATIC_DIR: DEMO_PAGE } })
    const window = await testWindow(t, name)
    const [one, two] = [await window.newPage(), await window.newPage()]
    const seen = callbacks(one)
    for (const tab of [one, two]) {
      await tab.bringToFront()
      await tab.goto(server.url)
      await follow(tab, '[data-testid=login]')
    }
    await allow(two, 'demo@example.test')
    await sessionIs(two, 'authenticated')
    await one.bringToFront()
    await allow(one, 'demo@example.test')
    await sessionIs(one, 'authenticated')
    t.equal(provider.tokenRequests(), 2)

    const [callback = ''] = seen
    await one.goto(callback)
    t.equal(one.url(), `${server.url}/`, 'a repeated callback redirects as the first one did')
    await sessionIs(one, 'authenticated')
    await one.reload()
    await sessionIs(one, 'authenticated')
    t.equal(provider.tokenRequests(), 2, 'a repeated callback exchanges nothing')
  })

  await test(`${name}: the user stays logged in after going back and forward in the history`, async (t) => {
    const { server, provider } = await startWorld(t, { settings: { STATIC_DIR: DEMO_PAGE } })
    const page = await (await testWindow(t, name)).newPage()
    await page.goto(server.url)
    await follow(page, '[data-testid=login]')
    await allow(page, 'demo@example.test')
    await sessionIs(page, 'authenticated')
    await page.goBack()
    t.equal(new URL(page.url()).origin, provider.url, 'going back leads to the provider')
    await page.goForward()
    await sessionIs(page, 'authenticated')
    t.notOk(hasError(page))
  })

  await test(`${name}: a sign-up that was cancelled and tried again keeps its partner`, async (t) => {
    const { server, provider } = await startWorld(t, { settings: { STATIC_DIR: DEMO_PAGE } })
    const page = await (await testWindow(t, name)).newPage()
    await page.goto(server.url)
    await follow(page, '[data-testid=partner-signup]')
    await follow(page, '[data-action=cancel]')
    await page.waitForSelector('[data-testid=message]:not([hidden])')
    await sessionIs(page, 'anonymous')

    await follow(page, '[data-testid=signup]')
    t.match(provider.authorizations.at(-1), {
      prompt: 'registration',
      utm_source: 'CU12345',
      utm_medium: 'affiliate',
    })
    await allow(page, `${name}@example.test`)
    await sessionIs(page, 'authenticated')

    await page.goto(`${server.url}/auth/signup`)
    t.notOk('utm_source' in (provider.authorizations.at(-1) ?? {}), 'a completed sign-up deletes its partner')
  })
}
