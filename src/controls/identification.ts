import { LRUCache } from 'lru-cache'
import { IDENTITY_TIMEOUT_MS, type Session } from '../sessions/index.ts'
import { within } from '../time/within.ts'

/** Asks upstream whose session it is. Undefined after a failure. Never rejects. */
export type Identify = (session: Session) => Promise<string | undefined>

const MAX_KNOWN = 10_000
/** A page that repeats its order must not cost upstream one request more each time. */
const FAILURE_MS = 5000

/** The result of an identification; `failed` for a while after a failure. */
type Identified = { readonly subject: string } | 'failed'

/**
 * Whose the sessions are that began without a subject. It is asked only while the orders of some subjects are paused, and
 * forgotten with this process.
 */
export class Identification {
  readonly #identify: Identify
  readonly #known = new LRUCache<string, Identified>({ max: MAX_KNOWN, ttlResolution: 0 })
  readonly #asked = new Map<string, Promise<void>>()

  constructor(identify: Identify) {
    this.#identify = identify
  }

  /** Undefined while that is not known. */
  of({ key, record: { subject } }: Pick<Session, 'key' | 'record'>): Identified | undefined {
    return subject === undefined ? this.#known.get(key) : { subject }
  }

  /**
   * Resolves once {@link of} knows, or knows that it failed. One request at a time for a session. Never rejects. The order that
   * waits for it grows old, so it fails as well if the token that it needs cannot be renewed in time.
   */
  ask(session: Session): Promise<void> {
    const { key } = session
    const running = this.#asked.get(key)
    if (running !== undefined) return running
    const asked = within(IDENTITY_TIMEOUT_MS, this.#identify(session)).then((subject) => {
      this.#asked.delete(key)
      if (subject === undefined) this.#known.set(key, 'failed', { ttl: FAILURE_MS })
      else this.#known.set(key, { subject })
    })
    this.#asked.set(key, asked)
    return asked
  }
}
