import { launch, type Browser, type LaunchOptions, type Page } from 'puppeteer-core'
import type { Test } from 'tap'
import { CHROMIUM, CHROMIUM_ARGUMENTS } from './chromium.ts'

/** Debian's path; the variable FIREFOX names another one. */
const FIREFOX = process.env['FIREFOX'] ?? '/usr/bin/firefox-esr'

const LAUNCH = {
  chrome: { browser: 'chrome', executablePath: CHROMIUM, args: CHROMIUM_ARGUMENTS },
  firefox: { browser: 'firefox', executablePath: FIREFOX },
} as const satisfies Record<string, LaunchOptions>

/** The browsers that every journey runs in. */
export const BROWSERS = ['chrome', 'firefox'] as const

/** A real headless browser that ends with the test. */
export async function testBrowser(t: Test, name: (typeof BROWSERS)[number]): Promise<Browser> {
  const browser = await launch({ headless: true, ...LAUNCH[name] })
  t.teardown(() => browser.close())
  return browser
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
