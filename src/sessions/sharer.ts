import type { Session } from './repository.ts'

/**
 * Whose share a session uses of what is limited for all users together: that of its subject, so that several sessions get
 * no more than one, or its own where the subject is not known.
 */
export function sharerOf({ key, record: { subject } }: Pick<Session, 'key' | 'record'>): string {
  return subject === undefined ? key : `subject:${subject}`
}
