import type { Requester } from '../http/requester.ts'

/** The reasons for which the server itself ends a session, leaving a tombstone. */
export const CAUSED_ENDS = ['logout', 'replaced', 'refused', 'revoked'] as const

/** One of {@link CAUSED_ENDS}. */
export type CausedEnd = (typeof CAUSED_ENDS)[number]

/** Why a session ended. `expired`: at its absolute limit; `idle`: at its idle limit; `gone`: for an unknown reason. */
export type EndReason = CausedEnd | 'expired' | 'idle' | 'gone'

/** The request that ended a session, and the subject of the session, as far as known. */
export interface EndedBy {
  /** Whose request ended the session; absent if no request did. */
  readonly requester?: Requester | undefined
  /** Identifies the subject of the session in the log. */
  readonly subjectTag?: string | undefined
  /** The id of the session, from which the tag of its subject follows. */
  readonly id?: string | undefined
}

/** The end of a session that this process causes or finds. */
export interface Ending extends Omit<EndedBy, 'id'> {
  readonly key: string
  readonly reason: EndReason
  /** False if there was no session to end. */
  readonly existed: boolean
}
