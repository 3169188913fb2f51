import { test } from 'tap'
import type { BrowserContext, Page } from 'playwright-core'
import { sendForm, sessionIs, testChromium } from '../support/browser/chromium.ts'
import { DEMO_PAGE } from '../support/browser/demo-page.ts'
import { startWorld } from '../support/world.ts'

const SETTINGS = {
  STATIC_DIR: DEMO_PAGE,
  IDENTITY_PATH: '/account/v1/me',
  IDENTITY_POINTER: '/data/user_id',
}

/** What the page shows only while it knows who its user is. */
const OF_A_KNOWN_USER = ['other-sessions', 'logout-everywhere']

async function logInThere(context: BrowserContext, url: string): Promise<Page> {
  const page = await context.newPage()
  await page.goto(`${url}/auth/login`)
  await sendForm(page)
  await sessionIs(page, 'authenticated')
  return page
}

await test('The demo page greets its user, counts the other sessions, and logs out in every browser', async (t) => {
  const { server } = await startWorld(t, { settings: SETTINGS })
  const [laptop, phone] = [await testChromium(t), await testChromium(t)]
  const first = await logInThere(laptop, server.url)
  await first.getByText('Hello, trader-1').waitFor()
  // The new login ends the session before, which the server has just counted.
  const counted = first.waitForResponse(/others=true/)
  await first.goto(`${server.url}/auth/login`)
  t.match(await (await counted).json(), { other_sessions: 0 }, 'the replaced session does not count')
  t.notOk(await first.getByTestId('other-sessions').isVisible())
  const second = await logInThere(phone, server.url)
  await second.getByText('1 other session').waitFor()
  await second.getByTestId('logout-everywhere').click()
  for (const page of [first, second]) {
    await sessionIs(page, 'anonymous')
    for (const id of ['greeting', ...OF_A_KNOWN_USER]) t.notOk(await page.getByTestId(id).isVisible(), id)
  }
  await second.getByText('You are logged out in all browsers.').waitFor()
})

await test('The demo page offers no logout everywhere where the server does not know its users', async (t) => {
  const { server } = await startWorld(t, { settings: { STATIC_DIR: DEMO_PAGE } })
  const page = await logInThere(await testChromium(t), server.url)
  for (const id of OF_A_KNOWN_USER) t.notOk(await page.getByTestId(id).isVisible(), id)
  t.ok(await page.getByTestId('logout').isVisible())
})
