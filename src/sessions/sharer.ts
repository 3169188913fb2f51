import { networks } from '../limits/networks.ts'
import type { Session } from './repository.ts'

/**
 * The user to whom the calls of a session count where all users share a limit: its subject, so that several sessions get no
 * more than one, or the session itself where the subject is not known.
 */
export function sharerOf({ key, record: { subject } }: Pick<Session, 'key' | 'record'>): string {
  return subject === undefined ? key : `subject:${subject}`
}

/**
 * The name by which a session counts among the users whom upstream refuses: its subject, or else the site of its client's
 * address, since one user may have many sessions.
 */
export function refusalSource(session: Pick<Session, 'key' | 'record'>, address: string | undefined): string {
  return session.record.subject === undefined ? `address:${networks(address).at(-1)}` : sharerOf(session)
}
