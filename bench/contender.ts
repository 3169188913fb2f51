import type { Program } from './program.ts'
import type { World } from './world.ts'

/** A contender that may not be installed on this machine. */
export interface Entry {
  readonly name: string
  /**
   * Starts it on a port. The cookies are a Cookie header for each session; a contender without sessions has none.
   * @throws Error if it cannot be started; the message says what is missing
   */
  readonly start: (world: World, port: number) => Promise<{ program: Program; cookies?: readonly string[] }>
  /** The redirect URI of its logins; undefined if it logs no users in. */
  readonly redirectUri?: (port: number) => string
}
