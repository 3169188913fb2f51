import type { Page } from 'playwright-core'
import { test, type Test } from 'tap'
import { sendForm, sessionIs, testChromium } from '../support/browser/chromium.ts'
import { DEMO_PAGE } from '../support/browser/demo-page.ts'
import { StallingProxy } from '../support/client/stalling-proxy.ts'
import { until } from '../support/time/until.ts'
import { testServer, testWorld, type World } from '../support/server/world.ts'

/** The demo page with a user logged in, and with a contract of two minutes on offer, behind a network that can fail. */
async function tradingPage(t: Test): Promise<{ page: Page; network: StallingProxy; world: World }> {
  let port = 0
  const network = await StallingProxy.start(t, () => port)
  const settings = { PUBLIC_URL: `http://localhost:${network.port}`, STATIC_DIR: DEMO_PAGE }
  const world = await testWorld(t, { settings, upstream: { tickMs: 500 }, redis: true })
  port = world.server.port
  const page = await (await testChromium(t)).newPage()
  await page.goto(`${settings.PUBLIC_URL}/auth/login`)
  await sendForm(page)
  await page.getByTestId('trade-duration').fill('2')
  await page.getByTestId('trade-unit').selectOption('m')
  await connectionIs(page, 'open')
  await isOnOffer(page)
  return { page, network, world }
}

const isOnOffer = (page: Page): Promise<void> => page.locator('#buy[aria-disabled=false]').waitFor()
const connectionIs = (page: Page, state: string): Promise<void> =>
  page.locator(`[data-testid=trade-connection][data-state=${state}]`).waitFor()
/** Waits for a message of the page. */
const says = (page: Page, text: RegExp): Promise<void> => page.getByTestId('message').getByText(text).waitFor()
/** Clicks without waiting until the button can be used, as a user may. */
const clickBuy = (page: Page): Promise<void> => page.getByTestId('trade-buy').dispatchEvent('click')

/** The number of contracts that the page shows: in the list, and the newest one while it is open. */
const contractsOf = (page: Page): Promise<number> => page.locator('.row.trade, .contract[data-result=open]').count()

/** What a page that is opened now says about the account, once it shows so many open contracts. */
async function seenAfresh(page: Page, contracts: number): Promise<{ balance: string; contracts: number }> {
  const fresh = await page.context().newPage()
  await fresh.goto(page.url())
  await isOnOffer(fresh)
  const balance = (await fresh.getByTestId('trade-balance').textContent()) ?? ''
  // The page asks for the open contracts while the contract is already on offer.
  await until(async () => (await contractsOf(fresh)) === contracts, 'the page shows what the account has')
  await fresh.close()
  return { balance, contracts }
}

await test('A buy that is clicked while the device is offline is not sent, and the page says so', async (t) => {
  const { page, network } = await tradingPage(t)
  network.isStalled = true
  await page.context().setOffline(true)
  await page.getByTestId('trade-connection').getByText('Your device is offline').waitFor()
  await clickBuy(page)
  await says(page, /^Nothing was bought: your order was not sent, because your device is offline/)

  network.isStalled = false
  await page.context().setOffline(false)
  await connectionIs(page, 'open')
  await isOnOffer(page)
  t.same(await seenAfresh(page, 0), { balance: '10,000.00 USD', contracts: 0 }, 'nothing was sent afterwards')
})

await test('After an order whose reply is lost, the page tells the user to look at the open contracts', async (t) => {
  const { page, network } = await tradingPage(t)
  // The order reaches the trading service, but its reply does not arrive.
  network.areRepliesStalled = true
  await clickBuy(page)
  await page.getByTestId('trade-buy').getByText('Buying').waitFor()
  network.isStalled = true
  network.areRepliesStalled = false
  network.cut()
  await says(page, /^It is not known whether your order was executed: Rise of Volatility 100 Index for 10\.00 USD/)
  network.isStalled = false
  await says(page, /(1 contract is|No contracts are) new under “Trades”\. Look there, and at your balance/)
  const contracts = await contractsOf(page)
  const said = (await page.locator('#trade-messages').textContent()) ?? ''
  t.match(said, contracts === 1 ? '1 contract is' : 'No contracts are', 'the message agrees with the list')
  const { balance } = await seenAfresh(page, contracts)
  t.equal(balance, contracts === 1 ? '9,990.00 USD' : '10,000.00 USD')
})

await test('While the server restarts, both connections count down to the same attempt, and come back', async (t) => {
  const { page, world } = await tradingPage(t)
  await world.server.close()
  await connectionIs(page, 'waiting')
  const countdowns = (): Promise<string[]> => page.locator('.next').allTextContents()
  await until(async () => {
    const [market = '', trade] = await countdowns()
    return /^, next attempt in \d+ s$/.test(market) && market === trade
  }, 'both cards show the same countdown')
  await clickBuy(page)
  await says(page, /^Nothing was bought: your order was not sent, because the connection is interrupted/)

  await testServer(t, { ...world.settings, PORT: String(world.server.port) })
  await connectionIs(page, 'open')
  await isOnOffer(page)
  t.same(await countdowns(), ['', ''])
})

await test('A logout says that the provider may remember the user, in every tab', async (t) => {
  const { page } = await tradingPage(t)
  const other = await page.context().newPage()
  await other.goto(page.url())
  await isOnOffer(other)
  await page.getByTestId('logout').click()
  for (const tab of [page, other]) {
    await says(tab, /^You are logged out here.* The login provider may still remember you/)
    await sessionIs(tab, 'anonymous')
    t.equal(await tab.getByTestId('account-row').count(), 0)
  }
})
