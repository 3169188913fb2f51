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

/** The version of a sealed text, and of sealed bytes, which begin with a character that no text begins with. */
const [TEXT, BYTES] = ['v1', 'v2']
const BEGINS_BYTES = '\u0002'
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
 * Text form: `v1.<secret's fingerprint>.<base64url of iv, ciphertext, tag>`. Sealed bytes are a third shorter: the number 2, iv,
 * ciphertext, tag, each byte as a character.
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
    const print = this.#current
    const sealed = this.#encrypt(`${TEXT}:${key}`, this.#derive(print, holderSecret), Buffer.from(plaintext))
    return `${TEXT}.${print}.${sealed.toString('base64url')}`
  }

  /** Decrypts a text. Undefined if its version or server secret is unknown, it is damaged, or `holderSecret` is wrong. */
  open(key: string, holderSecret: string, text: string): string | undefined {
    const [version, print = '', body = ''] = text.split('.')
    if (version !== TEXT || !this.#secrets().has(print)) return undefined
    const sealed = Buffer.from(body, 'base64url')
    return this.#decrypt(`${TEXT}:${key}`, this.#derive(print, holderSecret), sealed)?.toString('utf8')
  }

  /** Encrypts bytes. The result has a character for each byte. */
  sealBytes(key: string, holderSecret: string, bytes: Buffer): string {
    const sealed = this.#encrypt(`${BYTES}:${key}`, this.#derive(this.#current, holderSecret), bytes)
    return BEGINS_BYTES + sealed.toString('latin1')
  }

  /** Decrypts sealed bytes. Undefined if the text has none, if no known secret has sealed them, or as with {@link open}. */
  openBytes(key: string, holderSecret: string, text: string): Buffer | undefined {
    if (!text.startsWith(BEGINS_BYTES)) return undefined
    const sealed = Buffer.from(text.slice(BEGINS_BYTES.length), 'latin1')
    for (const print of this.#secrets().keys()) {
      const opened = this.#decrypt(`${BYTES}:${key}`, this.#derive(print, holderSecret), sealed)
      if (opened !== undefined) return opened
    }
    return undefined
  }

  /** Whether the first secret has sealed a text, so that it can be opened once the others are gone. */
  isCurrent(text: string): boolean {
    return text.startsWith(`${TEXT}.${this.#current}.`)
  }

  /** Names the secrets, in their order. */
  get prints(): string {
    return [...this.#secrets().keys()].join()
  }

  /** The fingerprint of the secret that seals. */
  get #current(): string {
    const [first = ''] = this.#secrets().keys()
    return first
  }

  /** @returns iv, ciphertext, tag @param context the result cannot be opened in another one */
  #encrypt(context: string, secret: KeyObject, bytes: Buffer): Buffer {
    const iv = this.#newIv()
    const cipher = createCipheriv('aes-256-gcm', secret, iv)
    cipher.setAAD(Buffer.from(context))
    return Buffer.concat([iv, cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
  }

  #decrypt(context: string, secret: KeyObject, sealed: Buffer): Buffer | undefined {
    if (sealed.length < IV_BYTES + TAG_BYTES) return undefined
    const decipher = createDecipheriv('aes-256-gcm', secret, sealed.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
    decipher.setAAD(Buffer.from(context))
    decipher.setAuthTag(sealed.subarray(-TAG_BYTES))
    try {
      const opened = decipher.update(sealed.subarray(IV_BYTES, -TAG_BYTES))
      return Buffer.concat([opened, decipher.final()])
    } catch {
      return undefined
    }
  }

  #derive(print: string, holderSecret: string): KeyObject {
    const name = `${print} ${holderSecret}`
    const kept = this.#keys.get(name)
    if (kept !== undefined) return kept
    const secret = this.#secrets().get(print) ?? ''
    // Given as bytes, some versions of Node (24.21) take three times as long for the cipher.
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
