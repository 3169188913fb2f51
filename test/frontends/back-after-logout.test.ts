import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'puppeteer-core'
import { test, type Test } from 'tap'
import { accountPage, goBack, OTHER, read, shows, visit } from '../support/browser/account-page.ts'
import { browsersOr, logInBy, testWindow } from '../support/browser/browsers.ts'
import { DEMO_PAGE } from '../support/browser/demo-page.ts'
import { bundled, examplePage } from '../support/browser/example-page.ts'
import { until } from '../support/time/until.ts'
import { startWorld } from '../support/world.ts'

const LOG_OUT = `fetch('/auth/logout', { method: 'POST', headers: { 'X-CSRF': '1' } }).then(({ status }) => status)`

/** Notes whether the browser has kept the page, and whether the page hides itself then. */
const WATCH_RETURN = `addEventListener('pageshow', ({ persisted }) => {
  globalThis.isRestored = persisted
  sessionStorage.wasHidden = document.documentElement.hidden
})`

/** Pages with the package, an element that they show to a user who is logged in, and one that they show to any other. */
const PACKAGE_PAGES = [
  ['example page', async (t: Test) => bundled(await examplePage(t)), '#logout', '#login'],
  ['demo page', async () => DEMO_PAGE, '[data-testid=logout]', '[data-testid=session-state][data-state=anonymous]'],
] as const

/** Leaves the page, logs out on another one, and goes back. */
async function backAfterLogout(page: Page, path: string): Promise<void> {
  await page.evaluate(WATCH_RETURN)
  await visit(page, '/other.html')
  await until(async () => (await read(page, LOG_OUT)) === 204, 'a logout')
  await goBack(page, path)
}

for (const name of browsersOr('chrome')) {
  await test(`${name}: Back after a logout shows the account, unless a page does something about it`, async (t) => {
    const { page } = await accountPage(t, name, ['addEventListener', 'WebSocket'])
    await backAfterLogout(page, '/account.html')
    await shows(page, 'VRTC100')
    t.equal(await page.evaluate('isRestored'), true)
  })

  for (const without of [[], ['WebSocket']]) {
    const which = without.length === 0 ? 'with a socket' : 'without a socket'
    await test(`${name}: Back after a logout shows the login on account.js of docs/frontends.md, ${which}`, async (t) => {
      const { page } = await accountPage(t, name, without)
      await backAfterLogout(page, '/account.html')
      await shows(page, 'Log in')
      t.notMatch(await page.evaluate('document.body.innerText'), /VRTC100/)
      // Firefox does not keep a page that has a WebSocket, so it loads the page again.
      const isKept = name === 'chrome' || without.length > 0
      t.equal(await page.evaluate('sessionStorage.wasHidden'), isKept ? 'true' : undefined)
      t.equal(await page.evaluate('document.documentElement.hidden'), false)
    })
  }

  for (const [which, make, account, login] of PACKAGE_PAGES) {
    await test(`${name}: the ${which} has no socket once it is left; Back after a logout shows the login`, async (t) => {
      const STATIC_DIR = await make(t)
      await writeFile(join(STATIC_DIR, 'other.html'), OTHER)
      const { server, quiet } = await startWorld(t, { settings: { STATIC_DIR } })
      const page = await (await testWindow(t, name)).newPage()
      await logInBy(page, `${server.url}/auth/login`)
      await page.waitForSelector(account, { visible: true })
      await visit(page, '/other.html')
      await quiet()
      await goBack(page, '/')
      await page.waitForSelector(account, { visible: true })
      await backAfterLogout(page, '/')
      await page.waitForSelector(login, { visible: true })
      t.equal(await page.$(`${account}:not([hidden] *, [hidden])`), null)
      t.equal(await page.evaluate('globalThis.isRestored'), name === 'chrome' ? true : undefined)
    })
  }
}
