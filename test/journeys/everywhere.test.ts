import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import type { BrowserContext, Page } from 'playwright-core'
import { testChromium } from '../support/browser/chromium.ts'
import { testWorld } from '../support/server/world.ts'

const SETTINGS = {
  STATIC_DIR: fileURLToPath(new URL('../../sandbox/page', import.meta.url)),
  IDENTITY_PATH: '/account/v1/me',
  IDENTITY_POINTER: '/data/user_id',
}

async function logInThere(context: BrowserContext, url: string): Promise<Page> {
  const page = await context.newPage()
  await page.goto(`${url}/auth/login`)
  await page.fill('input[name=email]', 'demo@example.test')
  await page.fill('input[name=password]', 'any')
  await page.click('[data-action=continue]')
  await page.locator('[data-testid=session-state][data-state=authenticated]').waitFor()
  return page
}

await test('The demo page greets its user, counts the other sessions, and logs out in every browser', async (t) => {
  const { server } = await testWorld(t, { settings: SETTINGS })
  const browser = await testChromium(t)
  const [laptop, phone] = [await browser.newContext(), await browser.newContext()]
  const first = await logInThere(laptop, server.url)
  await first.getByText('Hello, user-demo').waitFor()
  await first.getByText('0 other sessions').waitFor()
  const second = await logInThere(phone, server.url)
  await second.getByText('1 other session').waitFor()
  await second.getByTestId('logout-everywhere').click()
  for (const page of [first, second]) {
    await page.locator('[data-testid=session-state][data-state=anonymous]').waitFor()
    t.notOk(await page.getByTestId('greeting').isVisible())
    t.notOk(await page.getByTestId('other-sessions').isVisible())
    t.notOk(await page.getByTestId('logout-everywhere').isVisible())
  }
  await second.getByText('You are logged out in all browsers.').waitFor()
})

await test('The demo page offers no logout everywhere where the server does not know its users', async (t) => {
  const { server } = await testWorld(t, { settings: { STATIC_DIR: SETTINGS.STATIC_DIR } })
  const browser = await testChromium(t)
  const page = await logInThere(await browser.newContext(), server.url)
  for (const id of ['greeting', 'other-sessions', 'logout-everywhere'])
    t.notOk(await page.getByTestId(id).isVisible(), id)
  t.ok(await page.getByTestId('logout').isVisible())
})
