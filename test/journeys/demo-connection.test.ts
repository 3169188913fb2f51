import type { Page } from 'playwright-core'
import { test, type Test } from 'tap'
import { sendForm, sessionIs, testChromium } from '../support/browser/chromium.ts'
import { DEMO_PAGE } from '../support/browser/demo-page.ts'
import { StallingProxy } from '../support/client/stalling-proxy.ts'
import { until } from '../support/time/until.ts'
import { type World, startWorld } from '../support/world.ts'

/** The demo page with a user logged in, and with a contract of two minutes on offer, behind a network that can fail. */
async function tradingPage(
  t: Test,
  prepare: (page: Page) => unknown = () => undefined,
): Promise<{ page: Page; network: StallingProxy; world: World }> {
  let port = 0
  const network = await StallingProxy.start(t, () => port)
  const settings = { PUBLIC_URL: `http://localhost:${network.port}`, STATIC_DIR: DEMO_PAGE }
  const world = await startWorld(t, { settings, market: { tickMs: 500 }, redis: true })
  port = world.server.port
  const page = await (await testChromium(t)).newPage()
  await prepare(page)
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

const NOT_KNOWN_YET =
  /^It is not known yet whether your order was executed: Rise of Volatility 100 Index for 10\.00 USD/

/**
 * Buys, and loses the connection before the reply.
 * @param isSent whether the order reaches the trading service
 * @param said what the page says before it is connected again
 */
async function loseOrder(page: Page, network: StallingProxy, isSent: boolean, said = NOT_KNOWN_YET): Promise<void> {
  if (isSent) network.areRepliesStalled = true
  else network.isStalled = true
  await clickBuy(page)
  await page.getByTestId('trade-buy').getByText('Buying').waitFor()
  network.isStalled = true
  network.areRepliesStalled = false
  network.cut()
  await says(page, said)
  network.isStalled = false
}

await test('After an order whose reply is lost, the page finds its contract, also if that has ended already', async (t) => {
  const { page, network, world } = await tradingPage(t)
  for (const [unit, made] of [
    ['m', 1],
    ['t', 2],
  ] as const) {
    await page.getByTestId('trade-duration').fill('2')
    await page.getByTestId('trade-unit').selectOption(unit)
    await isOnOffer(page)
    // While the server is away, the page cannot know its session either.
    await page.route('**/auth/session', (route) => route.abort())
    await page.evaluate(
      `document.dispatchEvent(new Event('visibilitychange')); window.dispatchEvent(new Event('visibilitychange'))`,
    )
    await says(page, /cannot tell at the moment whether you are logged in/)
    await loseOrder(page, network, true)
    await page.unroute('**/auth/session')
    await says(page, /^Your order was executed: Rise of Volatility 100 Index for 10\.00 USD, account DOT\d+\./)
    await until(async () => (await contractsOf(page)) === made, `${made} contracts`)
    await isOnOffer(page)
  }
  // Two ticks are over before the page is connected again, or soon afterwards.
  await page.locator('.row.trade:is([data-result=won], [data-result=lost])').waitFor()
  t.equal(await page.locator('#trade-messages .notice').count(), 2, 'each order has its own message')
  t.equal(world.upstream.sockets().demo, 1)
})

await test('An order that never arrived is called not seen, and can be looked for again', async (t) => {
  const { page, network } = await tradingPage(t)
  // The page watches the account for 15 seconds, which are shorter here. A request, which may take as long, is faster.
  await page.evaluate(`{
    const wait = setTimeout
    window.setTimeout = (call, ms, ...more) => wait(call, ms === 15000 ? 2000 : ms, ...more)
  }`)
  await loseOrder(page, network, false)
  await says(page, /nothing of this order is to be seen on the account\. It was probably not executed/)
  await page.getByText('Look again').click()
  await says(page, /^It is not known yet/)
  await says(page, /nothing of this order is to be seen on the account/)
  t.equal(await contractsOf(page), 0)
  t.same(await seenAfresh(page, 0), { balance: '10,000.00 USD', contracts: 0 })
})

/** In place of the part of the package that finds out what became of an order. */
const UNSURE = `
  import { SocketError } from '/client.js'
  const contracts = [1, 2].map((contract_id) => ({ contract_id, contract_type: 'CALL', purchase_time: 1, buy_price: 10 }))
  const answers = [
    async () => { throw new SocketError('RateLimit', 'Too often.', { reply: { msg_type: 'portfolio' } }) },
    async () => ({ is: 'ambiguous', candidates: contracts }),
  ]
  export const fate = () => answers.shift()()`

await test('While it cannot be told what became of an order, the page says so and shows what fits', async (t) => {
  const { page, network } = await tradingPage(t, (page) =>
    page.route('**/client/orders.js', (route) => route.fulfill({ contentType: 'text/javascript', body: UNSURE })),
  )
  await loseOrder(page, network, false, /what became of this order could not be found out/)
  await page.getByText('Look again').click()
  await says(page, /cannot be told whether one of the 2 contracts that fit is that of this order/)
  t.equal(await contractsOf(page), 2)
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

  await world.instance({ PORT: String(world.server.port) })
  await connectionIs(page, 'open')
  await isOnOffer(page)
  await until(async () => String(await countdowns()) === ',', 'no card counts down any more')
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
