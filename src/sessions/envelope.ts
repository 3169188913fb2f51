import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'

const VERSION = 'v1'
const IV_BYTES = 12
const TAG_BYTES = 16

/**
 * Encrypts what stands in the store: AES-256-GCM under a key derived (HKDF, RFC 5869) from a server secret and the
 * holder's own secret (a session id, or state and cookie of a login). A dump of the store, even together with the
 * server's secrets, opens nothing without the holder's cookie.
 *
 * Text form: `v1.<secret's fingerprint>.<base64url of iv, ciphertext, tag>`.
 */
export class Envelope {
  readonly #secrets: ReadonlyMap<string, string>
  readonly #current: string

  /** @param secrets the first seals, all open */
  constructor(secrets: readonly string[]) {
    this.#secrets = new Map(secrets.map((secret) => [fingerprint(secret), secret]))
    const [first] = this.#secrets.keys()
    if (first === undefined) throw new TypeError('an envelope needs a secret')
    this.#current = first
  }

  /** @param key the store key, which the sealed text is bound to */
  seal(key: string, holderSecret: string, plaintext: string): string {
    const iv = randomBytes(IV_BYTES)
    const cipher = createCipheriv('aes-256-gcm', this.#derive(this.#current, holderSecret), iv)
    cipher.setAAD(Buffer.from(`${VERSION}:${key}`))
    const sealed = Buffer.concat([iv, cipher.update(plaintext, 'utf8'), cipher.final(), cipher.getAuthTag()])
    return `${VERSION}.${this.#current}.${sealed.toString('base64url')}`
  }

  /** Undefined when it cannot be read: another version, a secret not held here, damage, or another holder. */
  open(key: string, holderSecret: string, text: string): string | undefined {
    const [version, print = '', body = ''] = text.split('.')
    const sealed = Buffer.from(body, 'base64url')
    if (version !== VERSION || !this.#secrets.has(print) || sealed.length < IV_BYTES + TAG_BYTES)
      return undefined
    const decipher = createDecipheriv(
      'aes-256-gcm',
      this.#derive(print, holderSecret),
      sealed.subarray(0, IV_BYTES),
      { authTagLength: TAG_BYTES },
    )
    decipher.setAAD(Buffer.from(`${VERSION}:${key}`))
    decipher.setAuthTag(sealed.subarray(-TAG_BYTES))
    try {
      const opened = decipher.update(sealed.subarray(IV_BYTES, -TAG_BYTES))
      return Buffer.concat([opened, decipher.final()]).toString('utf8')
    } catch {
      return undefined
    }
  }

  #derive(print: string, holderSecret: string): Buffer {
    const secret = this.#secrets.get(print) ?? ''
    return Buffer.from(hkdfSync('sha256', secret, holderSecret, 'store envelope', 32))
  }
}

/** Names a secret without telling anything about it. */
function fingerprint(secret: string): string {
  return createHash('sha256').update(`fingerprint:${secret}`).digest('base64url').slice(0, 8)
}
