import type { Test } from 'tap'
import { WebSocket } from 'ws'
import {
  createClient,
  type Client,
  type PublicSocket,
  type ServerOptions,
  type SocketStatus,
} from '../../../client/dist/client.js'
import type { JarBrowser } from '../browser/jar-browser.ts'
import { within } from '../time/until.ts'

/**
 * How a page of `pageUrl`, shown by this browser, reaches the server at `baseUrl`.
 * @param onClose is called with the code of every socket that closes
 */
export function pageOptions(
  browser: JarBrowser,
  pageUrl: string,
  baseUrl: string,
  onClose: (code: number) => void = () => undefined,
): ServerOptions {
  class PageSocket extends WebSocket {
    constructor(url: string) {
      const cookie = browser.cookieHeader(new URL(pageUrl), undefined)
      super(url, { headers: { origin: pageUrl, cookie, 'user-agent': browser.userAgent } })
      // Without a listener Node.js would throw the error. A page only sees the close.
      this.on('error', () => undefined).on('close', onClose)
    }
  }
  return {
    baseUrl,
    fetch: (url, init) => browser.fetch(url, init as Parameters<JarBrowser['fetch']>[1]),
    WebSocket: PageSocket as unknown as NonNullable<ServerOptions['WebSocket']>,
  }
}

/**
 * A client of the built browser package, in a page that a browser shows. It ends with the test.
 * @param onClose is called with the code of every socket that closes
 */
export function pageClient(
  t: Test,
  browser: JarBrowser,
  pageUrl: string,
  baseUrl = pageUrl,
  onClose?: (code: number) => void,
): Client {
  const client = createClient(pageOptions(browser, pageUrl, baseUrl, onClose))
  t.teardown(() => client.close())
  return client
}

/** The events of a page, which a test dispatches. To be called before the client of the page is made. */
export function pageEvents(t: Test): EventTarget {
  const page = new EventTarget()
  const scope = globalThis as { addEventListener?: unknown }
  scope.addEventListener = page.addEventListener.bind(page)
  t.teardown(() => delete scope.addEventListener)
  return page
}

/** Resolves when a socket reaches a state, which it may leave within milliseconds. To be called before it can. */
export function reaches(
  socket: Pick<PublicSocket, 'status' | 'onStatus'>,
  state: SocketStatus['state'],
): Promise<void> {
  const reached = new Promise<void>((resolve) => {
    const stop = socket.onStatus(() => {
      if (socket.status().state !== state) return
      stop()
      resolve()
    })
  })
  return within(reached, `the state ${state}`, 30_000)
}

/** The reason that a promise rejects with. @throws Error if it resolves */
export function failure(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => {
      throw new Error('it resolved')
    },
    (reason: unknown) => reason,
  )
}

/** The errors that the package reports to the page, as a list that grows until the end of the test. */
export function reports(t: Test): readonly unknown[] {
  const reported: unknown[] = []
  const page = globalThis as { reportError?: (error: unknown) => void }
  page.reportError = (error) => void reported.push(error)
  t.teardown(() => delete page.reportError)
  return reported
}
