import type { Session, Sessions } from '../../sessions/index.ts'
import { standstill } from '../../time/standstill.ts'

/**
 * The answer of the store about the session of a socket. `asked`: it has been asked; a session that has ended has ended its socket.
 * `away`: it is away, and this process has heard from it since it stood still, so the socket lives on for the grace. `deaf`: this
 * process has not, so nothing may be sent.
 */
type Confirmation = 'asked' | 'away' | 'deaf'

/** The user whose messages a relay sends on. */
export interface RelayUser {
  /** Whether the session is as it was when it was read last, as far as this process has heard. */
  isCurrent(): boolean
  /** Asks the store whether the session is live, and ends the relay before this resolves if it is not. Never rejects. */
  confirm(): Promise<Confirmation>
  /** Calls back once the session has ended, or could not be read for too long. @returns ends that */
  onEnd(listener: () => void): () => void
}

/** The user of a session that was read a moment ago. */
export function relayUser(sessions: Pick<Sessions, 'isCurrent' | 'confirm' | 'watch'>, session: Session): RelayUser {
  /** The standstills of this process before the session was last known to be live. */
  let heardAfter = standstill.count
  return {
    isCurrent() {
      const isCurrent = sessions.isCurrent(session)
      if (isCurrent) heardAfter = standstill.noticed
      return isCurrent
    },
    async confirm() {
      const { count } = standstill
      if (await sessions.confirm(session)) {
        heardAfter = count
        return 'asked'
      }
      return standstill.count === heardAfter ? 'away' : 'deaf'
    },
    onEnd: (onEnd) => sessions.watch(session, { isUse: false, onEnd }),
  }
}
