import type { Test } from 'tap'
import type { Session, Sessions } from '../../../src/sessions/index.ts'
import type { CloseStatus } from '../../../src/sockets/close-codes.ts'
import { SessionSocket } from '../../../src/sockets/session/session-socket.ts'
import { WaitingBytes } from '../../../src/sockets/waiting-bytes.ts'
import { followStoreClock } from '../../../src/time/store-time.ts'
import { nextEvent } from '../time/until.ts'
import { connection } from './connection.ts'

type Watcher = Parameters<Sessions['watch']>[1]
type State = Readonly<Record<string, unknown>>

/** The time of the store at first, in seconds. */
export const NOW = 2_000_000_000
export const SESSION = { id: 'first' } as Session

/** What a session socket is told and asked, on a real connection. */
export async function socketAlone(t: Test, hasControls = true) {
  const { socket, wire, client } = await connection(t)
  const world = {
    now: NOW * 1000,
    /** What sessions say of any session. */
    state: { authenticated: true, now: NOW, expires_at: NOW + 1000, idle_expires_at: NOW + 100 } as State,
    /** What the controls say, by the id of the session; that of nobody is the notice alone. */
    controls: {} as Record<string, State>,
    reread: async (): Promise<unknown> => ({ is: 'active' }),
    /** What was ended, and what was watched or read. */
    log: [] as unknown[],
    watcher: undefined as Watcher | undefined,
    onNotice: (): void => undefined,
    onPauses: (): void => undefined,
  }
  t.teardown(followStoreClock(() => world.now))
  const texts: string[] = []
  client.on('message', (data: Buffer) => texts.push(data.toString()))
  const sessions = {
    state: () => world.state,
    watch: (session: Session, watcher: Watcher) => {
      world.watcher = watcher
      world.log.push(['watch', session, watcher.isUse])
      return () => world.log.push('unwatched')
    },
    reread: (session: Session) => {
      world.log.push(['reread', session])
      return world.reread()
    },
  } as unknown as Sessions
  const controls = {
    stateFor: (session: Session | undefined) => world.controls[session?.id ?? 'nobody'] ?? {},
    onNotice: (listener: () => void) => {
      world.onNotice = listener
      return () => world.log.push('no more notices')
    },
    onPauses: (listener: () => void) => {
      world.onPauses = listener
      return () => world.log.push('no more pauses')
    },
  }
  const waiting = new WaitingBytes(2 ** 30, () => 0)
  const onEnd = (close: CloseStatus): void => void world.log.push(close)
  return {
    world,
    wire,
    client,
    closed: nextEvent(client, 'close').then(([code, reason]) => `${String(code)} ${String(reason)}`),
    open: () => {
      const options = { sessions, waiting, onEnd, ...(hasControls && { controls }) }
      return new SessionSocket({ socket, wire }, SESSION, options)
    },
    /** The events that have arrived since the last call, all that were sent included. */
    events: async (): Promise<unknown[]> => {
      client.ping()
      await nextEvent(client, 'pong')
      return texts.splice(0).map((text) => JSON.parse(text) as unknown)
    },
  }
}
