import type { Page } from 'playwright-core'
import { test } from 'tap'
import { readSharing } from '../../sandbox/sharing.ts'
import { sendForm, testChromium } from '../support/browser/chromium.ts'
import { DEMO_PAGE } from '../support/browser/demo-page.ts'
import { startWorld } from '../support/world.ts'

const SETTINGS = { STATIC_DIR: DEMO_PAGE, IDENTITY_PATH: '/account/v1/me', IDENTITY_POINTER: '/data/user_id' }

const isOnOffer = (page: Page): Promise<void> => page.locator('#buy[aria-disabled=false]').waitFor()

async function logIn(page: Page, url: string): Promise<void> {
  await page.goto(`${url}/auth/login`)
  await sendForm(page)
  await isOnOffer(page)
}

await test('While orders are paused, Buy says so before a click, nothing is sent, and selling goes on unless that is paused, too', async (t) => {
  const token = 'an-ops-token-of-32-bytes-or-longer'
  const { server } = await startWorld(t, { settings: { ...SETTINGS, OPS_TOKEN: token }, market: { tickMs: 1000 } })
  const orders = (method: string, body?: object): Promise<Response> =>
    fetch(`${server.opsUrl}/controls/orders`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
  const page = await (await testChromium(t)).newPage()
  const sent: string[] = []
  page.on('websocket', (socket) => {
    socket.on(
      'framesent',
      ({ payload }) => void (/"(?:buy|sell)":/.test(String(payload)) && sent.push(String(payload))),
    )
  })
  await logIn(page, server.url)
  await page.getByTestId('trade-duration').fill('2')
  await page.getByTestId('trade-unit').selectOption('m')
  await isOnOffer(page)
  const [buy, sell] = [page.getByTestId('trade-buy'), page.getByTestId('trade-sell')]
  await buy.click()
  await sell.filter({ hasText: /^Sell for \d/ }).waitFor()
  await isOnOffer(page)

  t.equal((await orders('PUT', { paused: true, message: 'Prices of R_100 are wrong.' })).status, 200)
  await buy.filter({ hasText: /^Orders are paused$/ }).waitFor()
  t.equal(await buy.getAttribute('aria-disabled'), 'true')
  const reason = page.getByTestId('trade-problem')
  await reason.filter({ hasText: /^Prices of R_100 are wrong\.$/ }).waitFor()
  await buy.dispatchEvent('click')
  t.match(await sell.textContent(), /^Sell for \d/)
  t.equal(await sell.getAttribute('aria-disabled'), 'false')

  const until = Math.floor(Date.now() / 1000) + 600
  await orders('PUT', { paused: true, closing: false, until })
  await sell.filter({ hasText: /^Selling is paused$/ }).waitFor()
  await sell.dispatchEvent('click')
  await reason.filter({ hasText: /^The operator has paused orders\. Until \d\d:\d\d\.$/ }).waitFor()

  await orders('DELETE')
  await isOnOffer(page)
  await buy.filter({ hasText: /^Buy rise for 10\.00 USD$/ }).waitFor()
  await sell.filter({ hasText: /^Sell for \d/ }).waitFor()
  t.equal(sent.length, 1, 'no order of the pause was sent')
  t.equal(await page.locator('#trade-messages .notice').count(), 0)

  // Without a quote, no price draws the button anew.
  await page.getByTestId('trade-stake').fill('0')
  await reason.filter({ hasText: 'Enter a stake above zero.' }).waitFor()
  await orders('PUT', { paused: true })
  await buy.filter({ hasText: /^Orders are paused$/ }).waitFor()
})

await test('The header has one clock, of the limit that comes first, and says the other', async (t) => {
  const { server } = await startWorld(t, { settings: { ...SETTINGS, SESSION_IDLE_SECONDS: '300' } })
  const page = await (await testChromium(t)).newPage()
  await logIn(page, server.url)
  const countdown = page.getByTestId('session-countdown')
  await countdown.filter({ hasText: /^Ends in [0-5]:\d\d if unused, else at \d\d:\d\d$/ }).waitFor()
  const { server: other } = await startWorld(t, { settings: { ...SETTINGS, SESSION_MAX_SECONDS: '300' } })
  await logIn(page, other.url)
  await countdown.filter({ hasText: /^Ends in [0-5]:\d\d$/ }).waitFor()
})

await test('The account in use is no button, and gets the focus of the one that chose it', async (t) => {
  const { server } = await startWorld(t, { settings: SETTINGS })
  const page = await (await testChromium(t)).newPage()
  await logIn(page, server.url)
  await page.evaluate(`fetch('/api/trading/v1/options/accounts', {
    method: 'POST',
    headers: { 'x-csrf': '1', 'content-type': 'application/json' },
    body: JSON.stringify({ account_type: 'demo', currency: 'EUR', group: 'row' }),
  })`)
  await page.reload()
  const inUse = page.getByTestId('account-row').filter({ has: page.getByTestId('account-in-use') })
  const before = await inUse.getAttribute('data-account-id')
  t.equal(await inUse.getByRole('button', { name: /use|trade/i }).count(), 0)
  await page.getByTestId('account-use').click()
  const after = await inUse.getAttribute('data-account-id')
  t.not(after, before)
  await page.locator('#trade-account', { hasText: after ?? '' }).waitFor()
  t.equal(await page.evaluate('document.activeElement.dataset.testid'), 'account-in-use')
})

for (const [feed, sentence] of [
  ['shared', /PUBLIC_FEED=shared/],
  ['relay', /PUBLIC_FEED=relay\), where a second equal subscription is refused as AlreadySubscribed/],
] as const) {
  await test(`The page says that its market data comes from PUBLIC_FEED=${feed}`, async (t) => {
    let opsUrl = ''
    const sharing = () => readSharing(opsUrl)
    const { server } = await startWorld(t, { settings: { ...SETTINGS, PUBLIC_FEED: feed }, market: { sharing } })
    opsUrl = server.opsUrl
    const page = await (await testChromium(t)).newPage()
    await page.goto(server.url)
    await page.getByTestId('feed').filter({ hasText: sentence }).waitFor()
  })
}
