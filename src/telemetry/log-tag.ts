import { createHmac } from 'node:crypto'

const TAG_LENGTH = 10

/**
 * Returns a short pseudonym for the log. Without the secret it cannot be traced back, even if names can be guessed.
 * @param name must be unique across kinds: the store key of a session, or `kind:` and a name for anything else
 */
export function logTag(secret: string, name: string): string {
  return createHmac('sha256', secret).update(name).digest('base64url').slice(0, TAG_LENGTH)
}
