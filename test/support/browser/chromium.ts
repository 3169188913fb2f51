import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from 'playwright-core'
import { t as root, type Test } from 'tap'
import type { Place } from '../telemetry/token-hunt.ts'

/** Debian's path; the variable CHROMIUM names another one. */
export const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium'
/** Without Chromium's own sandbox, because tests run as root in containers, and without requests to the internet. */
export const CHROMIUM_ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** Runs in the page: everything that it can read without a request. */
const HELD_BY_A_PAGE = `({
  'document.cookie': document.cookie,
  localStorage: JSON.stringify({ ...localStorage }),
  sessionStorage: JSON.stringify({ ...sessionStorage }),
  document: document.documentElement.outerHTML,
  location: location.href,
  referrer: document.referrer,
  history: JSON.stringify(history.state),
  'performance entries': JSON.stringify(performance.getEntries()),
})`

let shared: Promise<Browser> | undefined

function launch(): Promise<Browser> {
  const browser = chromium.launch({ executablePath: CHROMIUM, args: CHROMIUM_ARGUMENTS })
  root.teardown(async () => (await browser).close())
  return browser
}

/**
 * A private window of a real headless Chromium, with cookies and storage of its own, that ends with the test. The tests of
 * a file share the browser, whose start takes longer than most of them.
 */
export async function testChromium(t: Test, options: BrowserContextOptions = {}): Promise<BrowserContext> {
  shared ??= launch()
  const window = await (await shared).newContext(options)
  t.teardown(() => window.close())
  return window
}

/** Fills in and sends the provider's form. */
export async function sendForm(page: Page, email = 'demo@example.test'): Promise<void> {
  await page.fill('input[name=email]', email)
  await page.fill('input[name=password]', 'any')
  await page.click('[data-action=continue]')
}

/** Waits until the demo page shows this session state. */
export async function sessionIs(page: Page, state: 'authenticated' | 'anonymous'): Promise<void> {
  await page.locator(`[data-testid=session-state][data-state=${state}]`).waitFor()
}

/** Collects everything that a page could read while it runs. */
export class PageRecord {
  readonly #places: Place[] = []
  readonly #reading: Promise<void>[] = []
  /** URLs of bodies that the browser did not return. */
  readonly unread: string[] = []

  constructor(context: BrowserContext) {
    context.on('page', (page) => this.#watch(page))
  }

  /** Everything collected so far, and the current cookies, storage and document. */
  async places(page: Page): Promise<Place[]> {
    await Promise.all(this.#reading)
    const readable = await page.evaluate<Record<string, string>>(HELD_BY_A_PAGE)
    return [...this.#places, ...Object.entries(readable).map(([where, text]) => ({ where, text }))]
  }

  #watch(page: Page): void {
    page.on('console', (message) => this.#places.push({ where: 'console', text: message.text() }))
    page.on('response', (response) => {
      const request = response.request()
      const url = response.url()
      // No page can read the redirects of a navigation, nor the Set-Cookie header of a response.
      if (response.status() >= 300 && response.status() < 400) return
      const headers = Object.entries(response.headers()).filter(([name]) => name !== 'set-cookie')
      this.#places.push({ where: `url of ${request.method()} ${url}`, text: url })
      this.#places.push({ where: `headers of ${url}`, text: JSON.stringify(headers) })
      // Such a response has no body (RFC 9110 §15.3.5).
      if (response.status() === 204) return
      // The browser fetches the icon for itself, and discards it when the page is left.
      if (url.endsWith('/favicon.svg')) return
      this.#reading.push(
        response.text().then(
          (text) => void this.#places.push({ where: `body of ${url}`, text }),
          () => void this.unread.push(url),
        ),
      )
    })
    page.on('websocket', (socket) => {
      this.#places.push({ where: `url of socket ${socket.url()}`, text: socket.url() })
      const frame = ({ payload }: { payload: string | Buffer }): void => {
        this.#places.push({ where: `frame of ${socket.url()}`, text: payload.toString() })
      }
      socket.on('framereceived', frame)
      socket.on('framesent', frame)
    })
  }
}
