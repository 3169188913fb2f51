import { launch, type Browser, type BrowserContext, type LaunchOptions, type Page } from 'puppeteer-core'
import { t as root, type Test } from 'tap'
import { CHROMIUM, CHROMIUM_ARGUMENTS } from './chromium.ts'

/** Debian's path; the variable FIREFOX names another one. */
const FIREFOX = process.env['FIREFOX'] ?? '/usr/bin/firefox-esr'

const LAUNCH = {
  chrome: { browser: 'chrome', executablePath: CHROMIUM, args: CHROMIUM_ARGUMENTS },
  firefox: { browser: 'firefox', executablePath: FIREFOX },
} as const satisfies Record<string, LaunchOptions>

const BROWSERS = ['chrome', 'firefox'] as const

export type BrowserName = (typeof BROWSERS)[number]

/**
 * The browsers of a journey: the named one, both with ALL_BROWSERS=1, which `npm run test:browsers` sets, or that of BROWSER, which
 * `npm run test:field` sets.
 */
export function browsersOr(usual: BrowserName): readonly BrowserName[] {
  const only = BROWSERS.filter((name) => name === process.env['BROWSER'])
  if (only.length > 0) return only
  return process.env['ALL_BROWSERS'] === undefined ? [usual] : BROWSERS
}

const shared = new Map<BrowserName, Promise<Browser>>()

function start(name: BrowserName): Promise<Browser> {
  const browser = launch({ headless: true, ...LAUNCH[name] })
  shared.set(name, browser)
  root.teardown(async () => (await browser).close())
  return browser
}

/**
 * A private window of a real headless browser, with cookies and storage of its own, that ends with the test. The tests of a
 * file share the browser, whose start takes longer than most of them.
 */
export async function testWindow(t: Test, name: BrowserName): Promise<BrowserContext> {
  const window = await (await (shared.get(name) ?? start(name))).createBrowserContext()
  t.teardown(() => window.close())
  return window
}

/** Fills in and sends the provider's form, without the focus. */
const SEND_FORM = `
  document.querySelector('input[name=email]').value = 'demo@example.test'
  document.querySelector('input[name=password]').value = 'any'
  document.querySelector('[data-action=continue]').click()`

/**
 * Logs in: leaves the page, sends the form if the provider shows one, and returns. All this works in a background tab,
 * because a tab that gets the focus would check its session.
 */
export async function logInBy(page: Page, loginUrl: string): Promise<void> {
  await page.goto(loginUrl)
  // A user who is still logged in at the provider returns at once.
  if ((await page.$('[data-action=continue]')) === null) return
  await Promise.all([page.waitForNavigation(), page.evaluate(SEND_FORM)])
}

/** Clicks an element, and waits for the navigation. */
export async function follow(page: Page, selector: string): Promise<void> {
  await page.waitForSelector(selector, { visible: true })
  await Promise.all([page.waitForNavigation(), page.click(selector)])
}

/** Fills in and sends the provider's form. */
export async function allow(page: Page, email: string): Promise<void> {
  await page.locator('input[name=email]').fill(email)
  await page.locator('input[name=password]').fill('any')
  await follow(page, '[data-action=continue]')
}

/** Waits until the demo page shows this session state. */
export async function sessionIs(page: Page, state: 'authenticated' | 'anonymous'): Promise<void> {
  await page.waitForSelector(`[data-testid=session-state][data-state=${state}]`)
}
