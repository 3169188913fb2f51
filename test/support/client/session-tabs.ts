import type { Test } from 'tap'
import { WebSocket } from 'ws'
import { createSession, type ServerOptions, type SessionState, type SessionStore } from '../../../client/dist/client.js'
import { until } from '../time/until.ts'
import { SessionServer } from './session-server.ts'

class QuietSocket extends WebSocket {
  constructor(url: string) {
    super(url)
    this.on('error', () => undefined)
  }
}

/** A session store alone, in a tab without cookies. It ends with the test. */
export function tabSession(t: Test, baseUrl: string, options: ServerOptions = {}): SessionStore {
  const session = createSession({ baseUrl, WebSocket: QuietSocket as never, ...options })
  t.teardown(() => session.close())
  return session
}

/** Follows a session. @returns the states that follow, as a list that grows */
export function watched(session: SessionStore): readonly SessionState['status'][] {
  const states: SessionState['status'][] = []
  session.subscribe(() => void states.push(session.get().status))
  return states
}

/** A server, and tabs of one browser that know that its user is logged in. */
export interface ActiveTabs {
  readonly server: SessionServer
  readonly tabs: readonly SessionStore[]
  /** The first tab. */
  readonly session: SessionStore
  /** The states of each tab so far. */
  readonly states: readonly (readonly SessionState['status'][])[]
}

/** Starts them. They end with the test. @param state that of the server */
export async function activeTabs(t: Test, count = 1, state: Partial<SessionServer> = {}): Promise<ActiveTabs> {
  const server = await SessionServer.start(t, state)
  const tabs = Array.from({ length: count }, () => tabSession(t, server.url))
  const states = tabs.map(watched)
  const sockets = server.hasSocket ? 1 : 0
  await until(() => tabs.every((tab) => tab.get().status === 'active') && server.open === sockets)
  // The first message of the session socket would otherwise replace the result of a check.
  await server.delivered()
  return { server, tabs, session: tabs[0] as SessionStore, states }
}
