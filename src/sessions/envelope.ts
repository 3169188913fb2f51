import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createSecretKey,
  hkdfSync,
  randomFillSync,
  type KeyObject,
} from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { derived, type Changing } from '../config/changing.ts'

const VERSION = 'v1'
const IV_BYTES = 12
const TAG_BYTES = 16
/** Random bytes are made for this many texts at once, since making a few takes as long as making many. */
const IVS = 256
/** Derived keys that are kept, since a holder's records are opened and sealed again within moments. */
const MAX_KEYS = 1000

/**
 * Encrypts stored values with AES-256-GCM. The key is derived (HKDF, RFC 5869) from a server secret and the holder's own
 * secret (a session id, or state and cookie of a login), so that a dump of the store cannot be decrypted without the
 * holders' cookies, not even with the server's secrets.
 *
 * Text form: `v1.<secret's fingerprint>.<base64url of iv, ciphertext, tag>`.
 */
export class Envelope {
  /** The secrets by their fingerprints. */
  readonly #secrets: () => ReadonlyMap<string, string>
  readonly #keys = new LRUCache<string, KeyObject>({ max: MAX_KEYS })
  readonly #ivs = Buffer.allocUnsafe(IVS * IV_BYTES)
  #nextIv = this.#ivs.length

  /** @param secrets the first one seals, all of them open */
  constructor(secrets: Changing<readonly string[]>) {
    this.#secrets = derived(secrets, (list) => new Map(list.map((secret) => [fingerprint(secret), secret])))
    if (this.#secrets().size === 0) throw new TypeError('an envelope needs a secret')
  }

  /** Encrypts a text. @param key the store key; the sealed text cannot be opened under another one */
  seal(key: string, holderSecret: string, plaintext: string): string {
    const iv = this.#newIv()
    const print = this.#current
    const cipher = createCipheriv('aes-256-gcm', this.#derive(print, holderSecret), iv)
    cipher.setAAD(Buffer.from(`${VERSION}:${key}`))
    const sealed = Buffer.concat([iv, cipher.update(plaintext, 'utf8'), cipher.final(), cipher.getAuthTag()])
    return `${VERSION}.${print}.${sealed.toString('base64url')}`
  }

  /** Decrypts a text. Undefined if its version or server secret is unknown, it is damaged, or `holderSecret` is wrong. */
  open(key: string, holderSecret: string, text: string): string | undefined {
    const [version, print = '', body = ''] = text.split('.')
    const sealed = Buffer.from(body, 'base64url')
    if (version !== VERSION || !this.#secrets().has(print) || sealed.length < IV_BYTES + TAG_BYTES) return undefined
    const decipher = createDecipheriv('aes-256-gcm', this.#derive(print, holderSecret), sealed.subarray(0, IV_BYTES), {
      authTagLength: TAG_BYTES,
    })
    decipher.setAAD(Buffer.from(`${VERSION}:${key}`))
    decipher.setAuthTag(sealed.subarray(-TAG_BYTES))
    try {
      const opened = decipher.update(sealed.subarray(IV_BYTES, -TAG_BYTES))
      return Buffer.concat([opened, decipher.final()]).toString('utf8')
    } catch {
      return undefined
    }
  }

  /** Whether the first secret has sealed a text, so that it can be opened once the others are gone. */
  isCurrent(text: string): boolean {
    return text.startsWith(`${VERSION}.${this.#current}.`)
  }

  /** The fingerprint of the secret that seals. */
  get #current(): string {
    const [first = ''] = this.#secrets().keys()
    return first
  }

  #derive(print: string, holderSecret: string): KeyObject {
    const name = `${print} ${holderSecret}`
    const kept = this.#keys.get(name)
    if (kept !== undefined) return kept
    const secret = this.#secrets().get(print) ?? ''
    // Given as bytes, Node would take three times as long for the cipher.
    const key = createSecretKey(Buffer.from(hkdfSync('sha256', secret, holderSecret, 'store envelope', 32)))
    this.#keys.set(name, key)
    return key
  }

  /** Random bytes that were never used. They are overwritten some calls later. */
  #newIv(): Buffer {
    if (this.#nextIv === this.#ivs.length) {
      randomFillSync(this.#ivs)
      this.#nextIv = 0
    }
    return this.#ivs.subarray(this.#nextIv, (this.#nextIv += IV_BYTES))
  }
}

/** Identifies a secret without revealing anything about it. */
function fingerprint(secret: string): string {
  return createHash('sha256').update(`fingerprint:${secret}`).digest('base64url').slice(0, 8)
}
