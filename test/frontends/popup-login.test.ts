import { test } from 'tap'
import type { Page } from 'puppeteer-core'
import { browsersOr, testWindow } from '../support/browser/browsers.ts'
import { documentedSample } from '../support/browser/documented-samples.ts'
import { bundled, examplePage } from '../support/browser/example-page.ts'
import { until, within } from '../support/time/until.ts'
import { startWorld } from '../support/world.ts'
import { scripted } from '../support/login/token-endpoint.ts'

/** The page that opens the popup. It keeps the result of window.open() for the test. */
const MAIN = `import { client } from './trading.ts'
  import { logInInPopup } from './popup.ts'
  const { open } = window
  window.open = (...values) => (globalThis.popup = open(...values))
  document.querySelector('button').onclick = logInInPopup
  client.session.subscribe(() => (document.querySelector('output').textContent = client.session.get().status))`
const FILES = {
  'index.html':
    '<!doctype html><button>Log in</button><output></output><script type="module" src="/src/main.ts"></script>',
  'logged-in.html': '<!doctype html><p>Close this window.</p><script type="module" src="/src/logged-in.ts"></script>',
  'src/main.ts': MAIN,
  'src/popup.ts': documentedSample('popup.ts'),
  'src/logged-in.ts': documentedSample('logged-in.ts'),
}
const POLICY = 'cross-origin-opener-policy'

for (const name of browsersOr('chrome')) {
  await test(`popup.ts of docs/frontends.md in ${name}: the page learns of the login, and the popup closes`, async (t) => {
    const STATIC_DIR = await bundled(await examplePage(t, FILES), ['index.html', 'logged-in.html'])
    const { provider, server } = await startWorld(t, { provider: scripted, settings: { STATIC_DIR } })
    const window = await testWindow(t, name)
    for (const policy of ['unsafe-none', 'same-origin']) {
      provider.pageHeaders = { 'content-type': 'text/html', [POLICY]: policy }
      const page = await window.newPage()
      await page.goto(server.url)
      await page.waitForFunction(`document.querySelector('output').textContent === 'anonymous'`)
      const opened = new Promise<Page | null>((resolve) => void page.once('popup', resolve))
      await page.click('button')
      const popup = (await within(opened, 'a popup opens')) as Page
      await until(() => popup.url().includes('state='))
      const isSevered = policy === 'same-origin'
      if (isSevered) {
        // The opener learns of it a moment after the navigation.
        await page.waitForFunction('popup.closed')
        t.equal(await popup.evaluate('window.opener'), null)
      } else t.equal(await page.evaluate('popup.closed'), false)

      const state = new URL(popup.url()).searchParams.get('state')
      const closed = new Promise<void>((resolve) => void popup.once('close', () => resolve()))
      const callback = `${server.url}/auth/callback?code=a-code&state=${state}`
      await popup.evaluate(`location.assign(${JSON.stringify(callback)})`)
      await page.waitForFunction(`document.querySelector('output').textContent === 'active'`)
      await within(closed, `${policy}: the popup closes`)
      t.equal(await page.evaluate('popup.closed'), true)
      await page.evaluate(`fetch('/auth/logout', { method: 'POST', headers: { 'X-CSRF': '1' } })`)
      await page.close()
    }
  })
}
