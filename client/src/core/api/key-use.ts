import { elapsedMs } from '../base/clock.ts'
import { MAX_LATE_MS } from '../base/times.ts'
import type { Server } from '../server.ts'
import type { SessionStore } from '../session/session-store.ts'

/** What this page knows of an `Idempotency-Key` that it has sent, or of a call without one. */
export interface KeyUse {
  /** True once a call with the key may have been executed. */
  mayBeExecuted: boolean
  /**
   * Asks whether the session is still the one in which the key was first sent. In another session the server does not know
   * the key, and would send the call again. Resolves to false if that cannot be told, or is told only after the machine has slept.
   */
  readonly isSameSession: () => Promise<boolean>
  /** Forgets the key, with which nothing was executed. */
  readonly forget: () => void
}

/**
 * Remembers in which session each key was first sent, until the page is left: in a later session the key must not be sent. The server
 * limits the keys of a session. A call without a key is known only to its caller.
 */
export function keyUses(
  server: Server,
  store: Pick<SessionStore, 'get'>,
): (key: string | undefined, session?: string) => KeyUse {
  const uses = new Map<string | undefined, KeyUse>()
  let knownFor: string | number = NaN
  let known: Promise<string | undefined>

  /** The tag of the session. Undefined if there is none, or the server does not answer. */
  async function tagOfSession(): Promise<string | undefined> {
    const body: { readonly now: number; readonly session?: string } | undefined = await server.session()
    return body?.session
  }

  /**
   * The current session, or one before it: then a call is not repeated although it could be. Never a later one. NaN differs
   * from itself, so that a page that does not know its session asks every time.
   */
  function current(): Promise<string | undefined> {
    const state = store.get()
    const now = state.status === 'active' ? state.session : NaN
    if (now !== knownFor) {
      knownFor = now
      known = tagOfSession().then((tag) => {
        if (tag === undefined) knownFor = NaN
        return tag
      })
    }
    return known
  }

  return (key, session) => {
    const before = uses.get(key)
    if (before) {
      before.mayBeExecuted = true
      return before
    }
    const first = session ?? current()
    const use: KeyUse = {
      mayBeExecuted: false,
      isSameSession: async () => {
        const askedAt = Date.now()
        const tag = await first
        // Asked last, because a login may come at any time.
        return tag !== undefined && tag === (await tagOfSession()) && elapsedMs(askedAt) < MAX_LATE_MS
      },
      forget: () => uses.delete(key),
    }
    if (key) uses.set(key, use)
    return use
  }
}
