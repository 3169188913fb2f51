import type { BrowserSocket } from '../browser/browser-socket.ts'
import type { World } from '../world.ts'

/** The path of session sockets. */
export const SESSION = '/ws/session'
/** The close of a socket whose session has ended. */
export const EXPIRED = { code: 4401, reason: 'session_expired' }

type Event = Readonly<Record<string, unknown>>

/** The messages of a session socket, parsed. */
export function eventsOf(client: BrowserSocket): Event[] {
  return client.texts.map((text) => JSON.parse(text) as Event)
}

/** An open session socket that has received the state of its session. */
export async function listening(world: World<'scripted', unknown>, port?: number): Promise<BrowserSocket> {
  const client = await world.socket(SESSION, port === undefined ? {} : { at: { port } }).opened()
  await client.count(1)
  return client
}

/** Asks for the session, or uses it. */
export function use(world: World<'scripted', unknown>, method = 'POST'): Promise<Response> {
  return world.browser.fetch('/auth/session', { method, headers: { 'x-csrf': '1' } })
}
