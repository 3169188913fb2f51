import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core'
import type { Test } from 'tap'
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

/** A real headless browser that ends with the test. */
export async function testChromium(t: Test): Promise<Browser> {
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: CHROMIUM_ARGUMENTS })
  t.teardown(() => browser.close())
  return browser
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
