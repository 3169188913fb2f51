import type { Program } from './program.ts'
import type { World } from './world.ts'

/** A running server that forwards requests to upstream. */
export interface Contender {
  readonly name: string
  readonly program: Program
  readonly port: number
  /** A Cookie header for each session; undefined if the contender has no sessions. */
  readonly cookies?: readonly string[]
}

/** A contender that may not be installed on this machine. */
export interface Entry {
  readonly name: string
  /** @throws Error if it cannot be started; the message says what is missing */
  readonly start: (world: World, port: number) => Promise<Contender>
  /** The redirect URI of its logins; undefined if it logs no users in. */
  readonly redirectUri?: (port: number) => string
}
