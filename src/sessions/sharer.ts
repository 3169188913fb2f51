import { networks } from '../limits/networks.ts'
import type { Session } from './repository.ts'

/**
 * Whose share a session uses of what is limited for all users together: that of its subject, so that several sessions get
 * no more than one, or its own where the subject is not known.
 */
export function sharerOf({ key, record: { subject } }: Pick<Session, 'key' | 'record'>): string {
  return subject === undefined ? key : `subject:${subject}`
}

/**
 * As what a session counts among those whom upstream refuses: as its subject, or else as the site of its client's address, since
 * one user may have many sessions.
 */
export function refusalSource(session: Pick<Session, 'key' | 'record'>, address: string | undefined): string {
  return session.record.subject === undefined ? `address:${networks(address).at(-1)}` : sharerOf(session)
}
