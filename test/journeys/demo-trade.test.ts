import type { Page } from 'puppeteer-core'
import { test } from 'tap'
import { allow, browsersOr, follow, sessionIs, testWindow } from '../support/browser/browsers.ts'
import { DEMO_PAGE } from '../support/browser/demo-page.ts'
import { until } from '../support/time/until.ts'
import { startWorld } from '../support/world.ts'

/** As in the demo, browsers share the market data. */
const settings = { STATIC_DIR: DEMO_PAGE, PUBLIC_FEED: 'shared' }
const byTestId = (id: string): string => `[data-testid=${id}]`

/** The text of the first element with this test id; empty if there is none. */
async function textOf(page: Page, id: string): Promise<string> {
  return String(await page.evaluate(`document.querySelector('${byTestId(id)}')?.textContent.trim() ?? ''`))
}

/** Waits until the element with this test id has this text. @returns the text */
async function shows(page: Page, id: string, pattern: RegExp): Promise<string> {
  let text = ''
  await until(async () => pattern.test((text = await textOf(page, id))), `${id} shows ${pattern}`)
  return text
}

/** Waits until a contract can be bought. */
async function isOnOffer(page: Page): Promise<void> {
  await page.waitForSelector(`${byTestId('trade-buy')}[aria-disabled=false]`)
}

/** Waits until the page shows so many contracts. */
async function hasRows(page: Page, count: number): Promise<void> {
  await until(async () => (await page.$$(byTestId('result-row'))).length === count, `${count} contracts`)
}

/** Changes the form to a contract of two minutes, which no test waits for. */
const TWO_MINUTES = `{
  document.querySelector('#duration').value = '2'
  document.querySelector('#duration-unit').value = 'm'
  document.querySelector('#ticket').dispatchEvent(new Event('input'))
}`

for (const name of browsersOr('chrome')) {
  await test(`${name}: a wrong password is refused, an open contract survives a reload and is sold in another tab`, async (t) => {
    const { server } = await startWorld(t, { settings, market: { tickMs: 500 } })
    const window = await testWindow(t, name)
    const page = await window.newPage()
    await page.goto(server.url)
    await follow(page, byTestId('login'))
    await page.locator('input[name=password]').fill('wrong')
    await follow(page, '[data-action=continue]')
    t.match(await page.$eval('[role=alert]', (alert) => alert.textContent), 'password is wrong')
    await allow(page, 'demo@example.test')
    await sessionIs(page, 'authenticated')

    await isOnOffer(page)
    await page.evaluate(TWO_MINUTES)
    await isOnOffer(page)
    await page.click(byTestId('trade-buy'))
    await shows(page, 'trade-status', /^Rise open$/)
    t.equal(await page.evaluate('document.activeElement.id'), 'buy', 'the focus stays on the button')
    await shows(page, 'trade-balance', /^9,990\.00 USD$/)

    await page.reload()
    await shows(page, 'trade-status', /^Rise open$/)
    t.equal(await page.$(byTestId('result-row')), null, 'the open contract is shown once')
    await shows(page, 'trade-detail', /USD now, entry [\d,]+\.\d\d, ends in 1:\d\d$/)

    const other = await window.newPage()
    // The provider remembers the user. The new login replaces the session of the first tab, which goes on with the new one.
    await other.goto(`${server.url}/auth/login`)
    await shows(other, 'trade-sell', /^Sell for \d/)
    await isOnOffer(other)
    await other.click(byTestId('trade-buy'))
    await shows(other, 'trade-status', /^Contract (won|lost): [+−]/)
    await shows(other, 'trade-detail', /^The price went from [\d,.]+ to [\d,.]+\. Win payout/)
    await hasRows(page, 2)
    await shows(page, 'result-row', /won|lost/)

    // A price that has fallen since it was shown is refused, and the button shows the new one.
    await until(async () => {
      const rows = await other.$$eval(byTestId('result-row'), (all) => all.map((row) => row.textContent))
      if (rows.some((row) => row?.includes('sold'))) return true
      await other.evaluate(`document.querySelector('${byTestId('result-sell')}:not([hidden])')?.click()`)
      return false
    }, 'the contract is sold')
    await page.waitForSelector(`${byTestId('result-row')}[data-result=sold]`)
    t.equal(await page.$(`${byTestId('result-sell')}:not([hidden])`), null, 'nothing is left to sell')

    await isOnOffer(other)
    await other.click(byTestId('trade-buy'))
    await hasRows(page, 3)
  })

  await test(`${name}: range, style, arrow and keys of the chart`, async (t) => {
    const { server } = await startWorld(t, { settings, market: { tickMs: 1000 } })
    const page = await (await testWindow(t, name)).newPage()
    await page.goto(server.url)
    await shows(page, 'price-change', /in 5 min$/)
    await page.click('input[name=range][value="60"]')
    await page.click('input[name=style][value=candles]')
    const change = await shows(page, 'price-change', /^[+−][\d,]+\.\d\d \([+−][\d.]+ %\) in 60 min$/)
    const [arrow, tone] = await page.$eval('#price-box', (box) => [
      box.firstElementChild?.textContent,
      box.getAttribute('data-tone'),
    ])
    t.same([arrow, tone], change.startsWith('+') ? ['▲', 'up'] : ['▼', 'down'])

    await page.focus(byTestId('chart'))
    const value = (): Promise<unknown> =>
      page.$eval(byTestId('chart'), (chart) => [
        Number(chart.getAttribute('aria-valuenow')),
        chart.getAttribute('aria-valuetext'),
      ])
    await page.keyboard.press('Home')
    t.match(await value(), [0, /^\d\d:\d\d:00: open [\d.]+, high [\d.]+, low [\d.]+, close [\d.]+$/])
    await page.keyboard.press('ArrowRight')
    await page.keyboard.press('PageUp')
    t.match(await value(), [4, String])
    await page.keyboard.press('Escape')
    t.equal(await page.evaluate('document.activeElement.id'), 'chart')

    await page.reload()
    await shows(page, 'price-change', /in 60 min$/)
    t.ok(await page.$('input[name=style][value=candles]:checked'), 'a reload keeps range and style')
  })
}
