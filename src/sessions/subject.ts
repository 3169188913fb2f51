/** Time limit of the request for the subject; a login waits for it. */
export const IDENTITY_TIMEOUT_MS = 3000
/** The longest subject. */
export const MAX_CHARACTERS = 256

/** Whether a text can be the subject of a session: 1 to 256 characters of any kind. */
export function isSubject(text: string): boolean {
  // A lone surrogate has no form in UTF-8, so that different subjects would have the same hash.
  if (text === '' || text.length > 2 * MAX_CHARACTERS || !text.isWellFormed()) return false
  return Array.from(text).length <= MAX_CHARACTERS
}
