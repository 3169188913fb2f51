import { createHmac } from 'node:crypto'

const TAG_LENGTH = 10

/**
 * The short name of something in the log. It leads back to nothing without the secret, even where names can be guessed.
 * @param name tells kinds apart too: a session's tag is made of its store key, any other of `kind:` and a name
 */
export function logTag(secret: string, name: string): string {
  return createHmac('sha256', secret).update(name).digest('base64url').slice(0, TAG_LENGTH)
}
