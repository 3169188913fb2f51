import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core'
import type { Test } from 'tap'
import type { Place } from './token-hunt.ts'

/** Debian's; another path through CHROMIUM. */
export const CHROMIUM = process.env['CHROMIUM'] ?? '/usr/bin/chromium'
/** No sandbox of its own, since tests run as root in containers; nothing that asks the internet. */
export const CHROMIUM_ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** Evaluated in the page: what it can read without asking anybody. */
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

/** Everything a page could read, collected while it runs. */
export class PageRecord {
  readonly #places: Place[] = []
  readonly #reading: Promise<void>[] = []
  /** Bodies that the browser did not give out. */
  readonly unread: string[] = []

  constructor(context: BrowserContext) {
    context.on('page', (page) => this.#watch(page))
  }

  /** What was seen so far, and what the page holds right now: cookies, storage, document. */
  async places(page: Page): Promise<Place[]> {
    await Promise.all(this.#reading)
    const held = await page.evaluate<Record<string, string>>(HELD_BY_A_PAGE)
    return [...this.#places, ...Object.entries(held).map(([where, text]) => ({ where, text }))]
  }

  #watch(page: Page): void {
    page.on('console', (message) => this.#places.push({ where: 'console', text: message.text() }))
    page.on('response', (response) => {
      const request = response.request()
      const url = response.url()
      // Hops of a navigation are the browser's own: no page can read them, nor the Set-Cookie header of any answer.
      if (response.status() >= 300 && response.status() < 400) return
      const headers = Object.entries(response.headers()).filter(([name]) => name !== 'set-cookie')
      this.#places.push({ where: `url of ${request.method()} ${url}`, text: url })
      this.#places.push({ where: `headers of ${url}`, text: JSON.stringify(headers) })
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
