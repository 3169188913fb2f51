import { fileURLToPath } from 'node:url'
import type { Page } from 'puppeteer-core'
import { test } from 'tap'
import { allow, BROWSERS, follow, sessionIs, testBrowser } from '../support/browsers.ts'
import { testWorld } from '../support/world.ts'

const STATIC_DIR = fileURLToPath(new URL('../../sandbox/page', import.meta.url))

/** The callbacks that the page's navigations went through. */
function callbacks(page: Page): string[] {
  const seen: string[] = []
  page.on('request', (request) => {
    if (request.url().includes('/auth/callback?')) seen.push(request.url())
  })
  return seen
}

async function errorShown(page: Page): Promise<boolean> {
  return new URL(page.url()).searchParams.has('auth_error')
}

for (const name of BROWSERS) {
  await test(`${name}: two tabs log in at once, and the callback may come again`, async (t) => {
    const { server, provider } = await testWorld(t, { settings: { STATIC_DIR } })
    const browser = await testBrowser(t, name)
    const [one, two] = [await browser.newPage(), await browser.newPage()]
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
    t.equal(one.url(), `${server.url}/`, 'a callback that comes again goes where the first one went')
    await sessionIs(one, 'authenticated')
    await one.reload()
    await sessionIs(one, 'authenticated')
    t.equal(provider.tokenRequests(), 2, 'and exchanges nothing')
  })

  await test(`${name}: back and forward after a login leave the user logged in`, async (t) => {
    const { server, provider } = await testWorld(t, { settings: { STATIC_DIR } })
    const browser = await testBrowser(t, name)
    const page = await browser.newPage()
    await page.goto(server.url)
    await follow(page, '[data-testid=login]')
    await allow(page, 'demo@example.test')
    await sessionIs(page, 'authenticated')
    await page.goBack()
    t.equal(new URL(page.url()).origin, provider.url, 'back is the provider')
    await page.goForward()
    await sessionIs(page, 'authenticated')
    t.notOk(await errorShown(page))
  })

  await test(`${name}: a partner sign-up that was cancelled and tried again keeps its partner`, async (t) => {
    const { server, provider } = await testWorld(t, { settings: { STATIC_DIR } })
    const browser = await testBrowser(t, name)
    const page = await browser.newPage()
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
    t.notOk('utm_source' in (provider.authorizations.at(-1) ?? {}), 'a completed sign-up uses its partner up')
  })
}
