import type { Page } from 'playwright-core'
import { test, type Test } from 'tap'
import { sendForm, sessionIs, testChromium } from '../support/browser/chromium.ts'
import { DEMO_PAGE } from '../support/browser/demo-page.ts'
import { type World, startWorld } from '../support/world.ts'
import { until } from '../support/time/until.ts'

const SETTINGS = { STATIC_DIR: DEMO_PAGE, IDENTITY_PATH: '/account/v1/me', IDENTITY_POINTER: '/data/user_id' }

/** A world whose users the server knows, and whose prices change once a second, as in the demo. */
const demo = (t: Test): Promise<World> => startWorld(t, { settings: SETTINGS, market: { tickMs: 1000 } })

const isOnOffer = (page: Page): Promise<void> => page.locator('#buy[aria-disabled=false]').waitFor()

async function logIn(page: Page, url: string): Promise<void> {
  await page.goto(`${url}/auth/login`)
  await sendForm(page)
  await isOnOffer(page)
}

/** The ids of the accounts that the page lists. */
async function accounts(page: Page): Promise<(string | null)[]> {
  const rows = await page.locator('[data-account-id]').all()
  return Promise.all(rows.map((row) => row.getAttribute('data-account-id')))
}

/** Buys a contract of two minutes. */
async function buy(page: Page): Promise<void> {
  await page.getByTestId('trade-duration').fill('2')
  await page.getByTestId('trade-unit').selectOption('m')
  await isOnOffer(page)
  await page.getByTestId('trade-buy').click()
  await page.locator('.contract[data-result=open]').waitFor()
}

await test('Two users log in one right after the other: every tab shows the accounts of the one whom it greets', async (t) => {
  const { server } = await demo(t)
  const context = await testChromium(t)
  const [idle, first, second] = [await context.newPage(), await context.newPage(), await context.newPage()]
  await idle.goto(server.url)
  await logIn(first, server.url)
  await second.goto(`${server.url}/auth/signup`)
  await sendForm(second, 'second@example.test')
  await second.getByText('Hello, trader-2').waitFor()
  await second.getByTestId('account-row').first().waitFor()
  const theirs = await accounts(second)
  t.equal(theirs.length, 2)
  for (const page of [idle, first]) {
    await page.getByText('Hello, trader-2').waitFor()
    await until(async () => String(await accounts(page)) === String(theirs), 'the accounts of the second user')
    t.equal(await page.locator('#trade-account').textContent(), theirs[0])
  }
})

await test('A click on Buy leaves the reason in place for which the trading service offers nothing', async (t) => {
  const { server } = await demo(t)
  const page = await (await testChromium(t)).newPage()
  await logIn(page, server.url)
  await page.getByTestId('trade-stake').fill('0.1')
  const problem = page.getByTestId('trade-problem')
  await problem.filter({ hasText: 'Minimum stake of 0.35' }).waitFor()
  await page.getByTestId('trade-buy').dispatchEvent('click')
  t.match(await problem.textContent(), /^Minimum stake of 0\.35/)
  t.equal(await page.evaluate('document.activeElement.id'), 'stake')
})

await test('Offline, nothing can be bought or sold at an old price; afterwards the page no longer says so', async (t) => {
  const { server } = await demo(t)
  const page = await (await testChromium(t)).newPage()
  await logIn(page, server.url)
  await buy(page)
  const sell = page.getByTestId('trade-sell')
  await sell.filter({ hasText: /^Sell for \d/ }).waitFor()
  await page.context().setOffline(true)
  await sell.filter({ hasText: /^Sell once connected$/ }).waitFor()
  for (const id of ['trade-sell', 'trade-buy']) {
    t.equal(await page.getByTestId(id).getAttribute('aria-disabled'), 'true', id)
  }
  t.equal(
    await page.getByTestId('trade-problem').getAttribute('data-kind'),
    'hint',
    'it is no error that prices are awaited',
  )
  await sell.dispatchEvent('click')
  const messages = page.locator('#trade-messages')
  await messages.getByText(/^Nothing was sold: your order was not sent, because your device is offline/).waitFor()
  await page.context().setOffline(false)
  await sell.filter({ hasText: /^Sell for \d/ }).waitFor()
  await messages.getByText('The connection is back').waitFor()
  t.notMatch(await page.locator('body').innerText(), /device is offline/)
})

await test('The page fits screens of 320, 768 and 1280 pixels, and no message covers Buy', async (t) => {
  const { server } = await demo(t)
  for (const width of [320, 768, 1280]) {
    const page = await (await testChromium(t, { viewport: { width, height: 640 } })).newPage()
    await logIn(page, server.url)
    await buy(page)
    await page.evaluate(
      `addEventListener('unhandledrejection', () => {}); document.querySelector('#account-create').click()`,
    )
    await page.getByText('You already have the demo account').waitFor()
    t.ok(Number(await page.evaluate('document.documentElement.scrollWidth')) <= width, `${width}: nothing to the right`)
    const cut = await page.evaluate(
      `[...document.querySelectorAll('.card > :not(.visually-hidden)')].filter((each) => each.scrollWidth > each.clientWidth + 1).map((each) => each.className)`,
    )
    t.same(cut, [], `${width}: nothing is cut off`)
    const covers = `(() => {
      const buy = document.querySelector('#buy')
      buy.scrollIntoView({ block: 'start' })
      const { left, top, width, height } = buy.getBoundingClientRect()
      return document.elementFromPoint(left + width / 2, top + height / 2).id
    })()`
    if (width < 760) t.equal(await page.evaluate(covers), 'buy')
    const [logOut, everywhere] = await Promise.all(
      ['logout', 'logout-everywhere'].map((id) => page.getByTestId(id).boundingBox()),
    )
    t.equal(logOut?.y, everywhere?.y, `${width}: both logouts stand side by side`)
    t.ok(Number(logOut?.x) < Number(everywhere?.x), 'the one that is used more comes first')
    if (width > 1000) {
      const brand = await page.locator('.brand').boundingBox()
      t.ok(Number(brand?.y) + Number(brand?.height) > Number(logOut?.y), 'in the line of the title')
    }
  }
})

await test('The page is two scripts and the package, and loads its chart library only for the chart', async (t) => {
  const { server } = await demo(t)
  const page = await (await testChromium(t)).newPage()
  const errors: string[] = []
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()))
  const asked: string[] = []
  page.on('request', (request) => asked.push(new URL(request.url()).pathname))
  await page.goto(server.url)
  await page.locator('#chart canvas').first().waitFor()
  const files = asked.filter((path) => path.endsWith('.js'))
  t.same(files.toSorted(), [
    '/app.js',
    '/chart-library.js',
    '/client.js',
    '/client/orders.js',
    '/client/series.js',
    '/client/sessions.js',
  ])
  t.equal(files.at(-1), '/chart-library.js')
  t.same(errors, [], 'the Content-Security-Policy allows all that the page does')
})

await test('The chart says what is under the pointer, and the page works without its chart library', async (t) => {
  const { server } = await demo(t)
  const context = await testChromium(t)
  const page = await context.newPage()
  await page.goto(server.url)
  await page.locator('#chart canvas').first().waitFor()
  await page.getByTestId('chart').hover({ position: { x: 100, y: 100 } })
  await page.locator('.chart-reading', { hasText: /^[\d,]+\.\d\d at \d\d:\d\d:\d\d$/ }).waitFor()
  await page.getByTestId('price').hover()
  await page.locator('.chart-reading').waitFor({ state: 'hidden' })

  await context.route('**/chart-library.js', (route) => route.abort())
  const without = await context.newPage()
  await without.goto(server.url)
  await without.getByTestId('price').filter({ hasText: /\d/ }).waitFor()
  await without.focus('#chart')
  await without.keyboard.press('ArrowLeft')
  t.match(await without.getByTestId('chart').getAttribute('aria-valuetext'), /^[\d,]+\.\d\d at /)
})

await test('Where a browser refuses the cookies of a login, the page says that and not that the login took too long', async (t) => {
  const { server } = await demo(t)
  const context = await testChromium(t)
  const page = await context.newPage()
  const failed = `${server.url}/?auth_error=state_mismatch&flow=login&return_to=%2F`
  await page.goto(failed)
  await page.getByText('This login was started elsewhere or took too long').waitFor()
  t.equal(await page.evaluate('document.cookie'), '', 'the probe is gone')
  // As in Safari at http://localhost.
  await page.addInitScript(`Object.defineProperty(document, 'cookie', { get: () => '', set: () => undefined })`)
  await page.goto(failed)
  await page.getByText(/refuses the cookies of a login.* DEV_INSECURE_COOKIES=true/).waitFor()
  await sessionIs(page, 'anonymous')
})

await test('The page shows what the operator tells all users, as text, and takes it back', async (t) => {
  const token = 'an-ops-token-of-32-bytes-or-longer'
  const { server } = await startWorld(t, { settings: { ...SETTINGS, OPS_TOKEN: token }, market: { tickMs: 1000 } })
  const control = (method: string, body?: object): Promise<Response> =>
    fetch(`${server.opsUrl}/controls/notice`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
  const page = await (await testChromium(t)).newPage()
  await logIn(page, server.url)
  t.equal((await control('PUT', { message: 'Back at <b>noon</b>.' })).status, 200)
  await page.locator('#messages').getByText('Back at <b>noon</b>.').waitFor()
  await control('DELETE')
  await page.locator('#messages').getByText('Back at <b>noon</b>.').waitFor({ state: 'detached' })
})

await test('On a small phone the price, the form and Buy are on the first screen', async (t) => {
  const { server } = await demo(t)
  const page = await (await testChromium(t, { viewport: { width: 360, height: 640 } })).newPage()
  await logIn(page, server.url)
  for (const id of ['symbol', 'price', 'trade-rise', 'trade-stake', 'trade-payout', 'trade-buy']) {
    const box = await page.getByTestId(id).boundingBox()
    t.ok(Number(box?.y) + Number(box?.height) <= 640, id)
  }
  t.equal(await page.evaluate('scrollY'), 0)
})
