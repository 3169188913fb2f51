import type { Test } from 'tap'
import type { Server } from '../../../client/src/core/server.ts'
import { SessionFollower } from '../../../client/src/core/session/session-follower.ts'
import type { SessionBody } from '../../../client/src/core/session/session-state.ts'
import { ManualTimers } from '../time/manual-timers.ts'
import { replace } from '../time/replace.ts'

/** The time of user and server at first, in seconds. */
export const NOW = 1_700_000_000

/** What the server says of a session. */
export function active(changes: object = {}): SessionBody {
  const times = { now: NOW, expires_at: NOW + 36_000, idle_expires_at: NOW + 3600 }
  return { authenticated: true, ...times, scope: 'trade', session: 'A', subject: 'user', ...changes }
}

export const ANONYMOUS: SessionBody = { authenticated: false, now: NOW }

interface FakeSocket {
  isClosed: boolean
  onmessage: ((event: { data: string }) => void) | null
  onclose: ((event: { code: number; reason: string }) => void) | null
  readonly close: () => void
}

interface FakeChannel {
  onmessage: ((event: { data: unknown }) => void) | undefined
  isClosed: boolean
}

/** Promises settle. */
const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

/** A follower of the session, in a page and beside other tabs that a test moves. Chance is a half. */
export function followerOn(t: Test) {
  const world = { now: NOW * 1000 }
  replace(t, Date, 'now', () => world.now)
  replace(t, Math, 'random', () => 0.5)
  const timers = new ManualTimers(t)
  const page = new Map<string, (event: object) => void>()
  replace(
    t,
    globalThis,
    'addEventListener',
    (name: string, listener: (event: object) => void, { signal }: { readonly signal: AbortSignal }) => {
      page.set(name, listener)
      signal.addEventListener('abort', () => page.delete(name))
    },
  )
  const leads: (() => unknown)[] = []
  const request = (_name: string, _options: object, lead: () => unknown): Promise<unknown> => {
    leads.push(lead)
    return new Promise(() => undefined)
  }
  replace(t, globalThis, 'navigator', { locks: { request } })
  const channels: FakeChannel[] = []
  const posted: unknown[] = []
  replace(
    t,
    globalThis,
    'BroadcastChannel',
    class implements FakeChannel {
      onmessage = undefined
      isClosed = false
      constructor() {
        channels.push(this)
      }
      postMessage(message: unknown): void {
        posted.push(message)
      }
      close(): void {
        this.isClosed = true
      }
    },
  )
  const asked: ((body: SessionBody | undefined) => void)[] = []
  const sockets: FakeSocket[] = []
  let asks = 0
  const server = {
    base: '',
    session: () => {
      asks++
      return new Promise<SessionBody | undefined>((resolve) => asked.push(resolve))
    },
    bodyOf: (value: unknown) =>
      (Object(value) as { authenticated?: boolean }).authenticated === undefined ? undefined : value,
    socket: () => {
      const socket: FakeSocket = {
        isClosed: false,
        onmessage: null,
        onclose: null,
        close: () => void (socket.isClosed = true),
      }
      sockets.push(socket)
      return socket
    },
  } as unknown as Server
  const follower = new SessionFollower(server)
  return {
    world,
    timers,
    follower,
    channels,
    sockets,
    /** Which events of the page are listened to. */
    page,
    /** How often the server was asked since this was last called. */
    asks: (): number => {
      const count = asks
      asks = 0
      return count
    },
    /** Answers the oldest question, with nothing as a server that cannot tell. */
    answer: (body?: SessionBody): Promise<void> => {
      asked.shift()?.(body)
      return settled()
    },
    /** What the page does. */
    event: (name: string): Promise<void> => {
      page.get(name)?.({ persisted: true })
      return settled()
    },
    /** This tab takes the lead. */
    lead: (): void => void leads.shift()?.(),
    /** What the session socket says. */
    hears: (event: unknown): Promise<void> => {
      sockets.at(-1)?.onmessage?.({ data: JSON.stringify(event) })
      return settled()
    },
    /** What another tab says. */
    hearsTab: (event: unknown): Promise<void> => {
      channels.at(-1)?.onmessage?.({ data: event })
      return settled()
    },
    /** What the other tabs were told since this was last called. */
    told: (): unknown[] => posted.splice(0),
  }
}

/** One whose user is logged in. */
export async function following(t: Test, body = active()) {
  const world = followerOn(t)
  const changes: [status: string, isOther: boolean][] = []
  world.follower.subscribe((isOther) => changes.push([world.follower.get().status, isOther]))
  await world.answer(body)
  world.asks()
  world.told()
  return { ...world, changes }
}
