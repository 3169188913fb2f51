import { BrowserSocket } from '../browser/browser-socket.ts'
import type { JarBrowser } from '../browser/jar-browser.ts'
import type { TestServer } from '../server/test-server.ts'
import type { OidcWorld } from './oidc-world.ts'

/** Opens the session socket of a browser, which gets the state of the session first. */
export async function watch(browser: JarBrowser, world: OidcWorld, { port }: TestServer): Promise<BrowserSocket> {
  const page = new URL(world.server.url)
  const headers = { origin: page.origin, cookie: browser.cookieHeader(page, page) }
  const socket = new BrowserSocket(`ws://localhost:${port}/ws/session`, headers)
  await socket.count(1)
  return socket
}
