import { test } from 'tap'
import type { BrowserContext, Page } from 'playwright-core'
import { sendForm, sessionIs, testChromium } from '../support/browser/chromium.ts'
import { DEMO_PAGE } from '../support/browser/demo-page.ts'
import { startWorld } from '../support/world.ts'

const SETTINGS = { STATIC_DIR: DEMO_PAGE, IDENTITY_PATH: '/account/v1/me', IDENTITY_POINTER: '/data/user_id' }
/** Where the screenshots go, if they are wanted. */
const { SCREENSHOTS } = process.env

/** Opens the page, logged in. @param faults gets what the console reports as an error */
async function logIn(context: BrowserContext, url: string, faults: string[]): Promise<Page> {
  const page = await context.newPage()
  page.on('console', (message) => message.type() === 'error' && faults.push(message.text()))
  page.on('pageerror', (error) => faults.push(String(error)))
  await page.goto(`${url}/auth/login`)
  await sendForm(page)
  await sessionIs(page, 'authenticated')
  return page
}

await test('The demo page lists the sessions of its user, and ends another one, whose page hears of it at once', async (t) => {
  const { server } = await startWorld(t, { settings: SETTINGS, market: { tickMs: 1000 } })
  const faults: string[] = []
  const userAgent = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Firefox/128.0'
  const phone = await logIn(await testChromium(t, { userAgent }), server.url, faults)
  for (const width of [320, 1280]) {
    const page = await logIn(await testChromium(t, { viewport: { width, height: 900 } }), server.url, faults)
    const card = page.getByTestId('sessions-card')
    const rows = page.getByTestId('session-row')
    await rows.first().waitFor()
    t.equal(await rows.count(), width === 320 ? 2 : 3)
    t.match(
      await rows.first().innerText(),
      /^Chrome on Linux\nLogged in at \d\d:\d\d, last used at \d\d:\d\d\nThis browser$/,
    )
    t.match(await rows.last().innerText(), /^Firefox on Windows\n.*\nEnd$/)
    t.equal(await page.locator('[data-current=true]').count(), 1)
    t.ok(Number(await page.evaluate('document.documentElement.scrollWidth')) <= width, `${width}: nothing to the right`)
    const isCut = `[...document.querySelectorAll('.card-sessions *')].some((each) => each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 0)`
    t.equal(await page.evaluate(isCut), false, `${width}: nothing is cut off`)
    if (SCREENSHOTS !== undefined) await card.screenshot({ path: `${SCREENSHOTS}/sessions-${width}.png` })
    if (SCREENSHOTS !== undefined) await page.screenshot({ path: `${SCREENSHOTS}/page-${width}.png`, fullPage: true })
    if (width === 320) continue
    await page.getByRole('button', { name: /^End the session of Firefox on Windows, logged in at/ }).click()
    await page.getByText('That session has ended.').waitFor()
    await sessionIs(phone, 'anonymous')
    await phone.getByText(/^You are logged out here/).waitFor()
    t.notOk(await phone.getByTestId('sessions-card').isVisible(), 'nothing of the user stays')
    await rows.nth(2).waitFor({ state: 'detached' })
    t.notMatch(await card.innerText(), /Firefox/)
    await page.getByText(/^1 other session$/).waitFor()
    t.equal(await page.evaluate('document.activeElement.id'), 'sessions-title')
  }
  t.same(faults, [])
})

await test('The demo page has no list of sessions where the server does not know its users', async (t) => {
  const { server } = await startWorld(t, { settings: { STATIC_DIR: DEMO_PAGE } })
  const faults: string[] = []
  const page = await logIn(await testChromium(t), server.url, faults)
  await page.getByTestId('account-row').first().waitFor()
  t.notOk(await page.getByTestId('sessions-card').isVisible())
  t.same(faults, [])
})
