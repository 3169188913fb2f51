import { once } from 'node:events'
import type { Test } from 'tap'
import { WebSocket } from 'ws'
import type { JarBrowser } from '../browser/jar-browser.ts'
import { testServer, type TestServer } from '../server/world.ts'
import type { OidcWorld } from './oidc-world.ts'

/** Another instance on the same Redis. */
export function another(
  t: Test,
  { settings, redis }: OidcWorld,
  other: Record<string, string> = {},
): Promise<TestServer> {
  return testServer(t, { ...settings, REDIS_URL: redis?.url ?? '', ...other })
}

/** Opens the session socket of a browser. `closed` has its code and the last message. */
export async function watch(
  browser: JarBrowser,
  world: OidcWorld,
  { port }: TestServer,
): Promise<{ closed: Promise<unknown[]> }> {
  const page = new URL(world.server.url)
  const socket = new WebSocket(`ws://localhost:${port}/ws/session`, {
    origin: page.origin,
    headers: { cookie: browser.cookieHeader(page, page) },
  })
  const messages: string[] = []
  socket.on('message', (data: Buffer) => messages.push(data.toString()))
  const closed = once(socket, 'close').then(([code]: unknown[]) => [code, JSON.parse(messages.at(-1) ?? 'null')])
  await once(socket, 'message')
  return { closed }
}
