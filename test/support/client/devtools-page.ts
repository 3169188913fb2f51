import { build } from 'esbuild'
import type { Page } from 'playwright-core'
import type { Test } from 'tap'
import { startWorld, type World } from '../world.ts'
import { until } from '../time/until.ts'
import { sendForm, testChromium } from '../browser/chromium.ts'

const DIST = new URL('../../../client/dist', import.meta.url).pathname
const PANEL = `document.body.append(document.createElement('trading-bff-devtools'))`
const START = `globalThis.client = createClient({ debug: true }); client.session.subscribe(() => {}); ${PANEL}`
const PAGES = {
  index: `import { createClient } from '/client.js'; import '/devtools.js'; ${START}`,
  late: `import { createClient } from '/client.js'; ${START}
    globalThis.first = client.api('/v1/health').then(() => import('/devtools.js'))`,
}

/** The devtools as a bundler of a page in development has them. */
async function bundled(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [`${DIST}/devtools.js`],
    bundle: true,
    format: 'esm',
    define: { 'process.env.NODE_ENV': '"development"' },
    write: false,
  })
  return outputFiles[0]?.text ?? ''
}

/** What a test sees of the devtools. */
interface Shown {
  readonly world: World
  readonly page: Page
  /** Exceptions, and violations of the Content-Security-Policy. */
  readonly errors: readonly string[]
  /** The text of a part of the panel. */
  readonly part: (name: string) => Promise<string>
}

/** A user who is logged in, on a page with the panel and a client in `client`. */
export async function devtoolsPage(
  t: Test,
  name: keyof typeof PAGES = 'index',
  settings: Readonly<Record<string, string>> = {},
): Promise<Shown> {
  const files: Record<string, string> = { 'devtools.js': await bundled() }
  for (const [page, script] of Object.entries(PAGES)) {
    files[`${page}.js`] = script
    files[`${page}.html`] =
      `<!doctype html><html lang="en"><title>A page</title><script type="module" src="/${page}.js"></script>`
  }
  const world = await startWorld(t, { settings: { STATIC_DIR: t.testdir(files), ...settings } })
  const page = await (await testChromium(t)).newPage()
  const errors: string[] = []
  page.on('console', (message) => /Content Security Policy/.test(message.text()) && errors.push(message.text()))
  page.on('pageerror', ({ message }) => errors.push(message))
  await page.goto(`${world.server.url}/auth/login?return_to=/${name}.html`)
  await sendForm(page)
  await holds(page, `globalThis.client?.session.get().status === 'active'`)
  return { world, page, errors, part: (summary) => partOf(page, summary) }
}

/** The text of a part of the panel on a page. */
export const partOf = (page: Page, name: string): Promise<string> =>
  page.locator('details', { has: page.locator('h3', { hasText: name }) }).innerText()

/** Waits until an expression is true in the page, whose Content-Security-Policy allows no other way. */
export const holds = (page: Page, expression: string): Promise<void> =>
  until(async () => (await page.evaluate(expression)) === true, expression)

/** Presses a button of the panel, as a user of the keyboard does. */
export async function press(page: Page, name: string): Promise<void> {
  const button = page.getByRole('button', { name, exact: true })
  const isOn = await button.getAttribute('aria-pressed')
  await button.focus()
  await page.keyboard.press('Space')
  await until(async () => (await button.getAttribute('aria-pressed')) !== isOn, `${name} is pressed`)
}

/** Opens a trading socket, as `trading`, and waits for it. */
export const TRADE = `(async () => {
  const { data: [{ account_id }] } = await (await client.api('/trading/v1/options/accounts')).json()
  globalThis.trading = client.tradingSocket(account_id)
  await trading.request({ ping: 1 })
  return account_id
})()`
