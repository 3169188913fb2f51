import type { Test } from 'tap'
import { WebSocket } from 'ws'
import {
  createClient,
  createSession,
  type Client,
  type ServerOptions,
  type SessionStore,
} from '../../client/dist/client.js'
import type { JarBrowser } from './jar-browser.ts'

/** How the browser package reaches a server in the name of a page that a browser shows. */
function pageOptions(browser: JarBrowser, pageUrl: string): ServerOptions {
  class PageSocket extends WebSocket {
    constructor(url: string) {
      super(url, { headers: { origin: pageUrl, cookie: browser.cookieHeader(new URL(pageUrl), undefined) } })
      // Without a listener it would be thrown; a page only gets to see the close.
      this.on('error', () => undefined)
    }
  }
  return {
    baseUrl: pageUrl,
    fetch: (url, init) => browser.fetch(url, init as Parameters<JarBrowser['fetch']>[1]),
    WebSocket: PageSocket as unknown as NonNullable<ServerOptions['WebSocket']>,
  }
}

/** The browser package, as built, in a page of a browser. It ends with the test. */
export function pageClient(t: Test, browser: JarBrowser, pageUrl: string): Client {
  const client = createClient(pageOptions(browser, pageUrl))
  t.teardown(() => client.close())
  return client
}

/** The session part alone, in a tab without cookies. It ends with the test. */
export function tabSession(t: Test, url: string): SessionStore {
  const session = createSession({
    baseUrl: url,
    WebSocket: QuietSocket as unknown as NonNullable<ServerOptions['WebSocket']>,
  })
  t.teardown(() => session.close())
  return session
}

class QuietSocket extends WebSocket {
  constructor(url: string) {
    super(url)
    this.on('error', () => undefined)
  }
}

/** What a promise rejects with. @throws Error when it resolves */
export function failure(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => {
      throw new Error('it resolved')
    },
    (reason: unknown) => reason,
  )
}
