import type { ApiError } from '../base/errors.ts'
import type { Server } from '../base/server.ts'
import type { SessionStore } from '../session/session-store.ts'
import type { fetchSession } from '../session/fetch-session.ts'
import type { call, CallInit } from './call.ts'

/** A call that is about to be sent with the key that `once` has given its order. */
export interface KeyedCall {
  readonly server: Server
  readonly store: SessionStore
  /** How to ask about the session. */
  readonly call: typeof call
  readonly fetchSession: typeof fetchSession
  readonly path: string
  readonly init: CallInit
  /** Notes that the key is used. Call it for one that this page may have used before it was reloaded. */
  readonly useKey: (key: string) => void
  /** That of the page's core: another module may have a copy of its own. */
  readonly ApiError: typeof ApiError
}

/** Chooses the key with which a call is sent, or refuses the call by rejecting. */
type KeyChoice = (call: KeyedCall) => Promise<string>

/** By the key that `once` has given its order, where the order is remembered. */
export type KeyChoices = Map<string | undefined, KeyChoice>
export const keyChoices: KeyChoices = new Map()
