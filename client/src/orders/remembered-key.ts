import type { ApiCall } from '../core/api/order.ts'
import { elapsedMs } from '../core/base/clock.ts'
import type { ApiError } from '../core/base/errors.ts'
import type { Core } from '../core/core.ts'
import { SESSION_PATH } from '../core/server.ts'
import type { SessionBody } from '../core/session/session-state.ts'

/** After this time a key is not sent again, because the server may have forgotten it. */
const MAX_AGE_MS = 3_600_000

/** How long a lock is waited for: a tab that sleeps may have it. Then the comparison alone keeps the keys apart. */
const LOCK_MS = 1000
/** An order is not sent later than this after it was made. The question about the session and the lock take less. */
const MAX_LATE_MS = 20_000

/** What is kept of an order whose outcome is not known yet. */
interface Kept {
  readonly key: string
  /** When the key was first sent, comparable with `Date.now()`. */
  readonly at: number
  /** The session in which it was sent. The server knows it in no other. */
  readonly session?: string | undefined
  /** A digest: nobody need learn from the storage who the user was. */
  readonly subject?: string | undefined
}

/** The calls that have begun and have not chosen their key yet. */
const choosing = new Set<RememberedKey>()

/**
 * The key of an order, kept in the `sessionStorage` until the outcome of the order is known. A duplicated tab has a copy of it, so
 * whatever follows from a kept key is the same in all tabs: they send the same keys, and each of these the server sends only once.
 */
export class RememberedKey {
  readonly #name: string
  #place: string | undefined
  #refusal: ApiError | undefined
  /** What takes the place of a kept key that is only asked about, once the page has said that the order was not made. */
  #following: Kept | undefined
  /**
   * What this call has sent, or what an equal one that may be made has forgotten or replaced since this began: it sends that key, or
   * nothing. So a second click orders nothing anew, even if the first has its answer meanwhile.
   */
  #sent: Kept | undefined
  /** The key that this call has read or written last. No other one is replaced or removed. */
  #own: string | undefined

  constructor(name: string) {
    this.#name = name
  }

  /**
   * Chooses the key of the order, and keeps it.
   * @param fresh the key of an order that is not kept
   * @throws ApiError if it must not be sent, or it cannot be told whether it may
   */
  async choose(core: Core, call: ApiCall, fresh: string): Promise<string> {
    const { method, path, json, body } = call
    // Bodies other than text cannot be compared, so the order is not remembered.
    if (json === undefined && body && typeof body !== 'string') return fresh
    const content = JSON.stringify([method, path, json ?? body])
    const place = (this.#place = `trading-bff:order:${this.#name}:${digest(content)}`)
    const askedAt = Date.now()
    choosing.add(this)
    const session = await core.server.session()
    const key = await underLock(place, () => {
      choosing.delete(this)
      // A machine that slept may read the response long after the user has made the order.
      const isLate = elapsedMs(askedAt) > MAX_LATE_MS
      return this.#choose(core, call, place, isLate ? undefined : session, fresh)
    })
    if (key === undefined) throw await withoutSession(core, call)
    return key
  }

  /** @returns undefined for an order that is kept while nobody is logged in */
  #choose(
    core: Core,
    { method, path }: ApiCall,
    place: string,
    session: SessionBody | undefined,
    fresh: string,
  ): string | undefined {
    const refusal = (cause?: unknown, code?: 'not_sent'): ApiError =>
      new core.ApiError(method, path, undefined, undefined, cause, code)
    // Read now, because an equal order may have begun meanwhile: it is the same one, and gets the same key.
    const sent = this.#sent
    const kept = sent ?? read(place)
    if (!session) throw refusal(undefined, kept ? undefined : 'not_sent')
    // The server refuses the call, from which nothing follows.
    if (!session.authenticated && !kept) return fresh
    this.#own = kept?.key
    if (!session.authenticated) return undefined
    const subject = session.subject === undefined ? undefined : digest(session.subject)
    const now = { session: session.session, subject }
    const isSame = kept?.session === now.session
    if (kept && isSame && elapsedMs(kept.at) <= MAX_AGE_MS) {
      // Unless the next order has taken the place since an equal one has forgotten this.
      if (sent && !read(place)) write(place, sent)
      this.#sent = kept
      // A page that was reloaded may have sent it before.
      core.useKey(kept.key, now.session)
      return kept.key
    }
    const following = this.#following
    // Another user may have logged in while the page was asked.
    if (sent || (following && following.session !== now.session)) {
      throw refusal(new Error('the key belongs to another session'))
    }
    // Without a subject it may have been another user, who is nobody's business.
    const isSameUser = isSame || (now.subject !== undefined && kept?.subject === now.subject)
    const key = kept && isSameUser ? next(kept.key) : fresh
    const chosen = following ?? { key, at: Date.now(), ...now }
    if (kept && isSameUser && !following) {
      this.#following = chosen
      throw (this.#refusal = refusal(new Error('the key belongs to another session')))
    }
    write(place, chosen)
    this.#own = chosen.key
    this.#sent = chosen
    return chosen.key
  }

  /** Whether an error says that the order may have been made in another session, or too long ago. */
  isOfOtherSession(error: unknown): boolean {
    return error !== undefined && error === this.#refusal
  }

  /**
   * The outcome is known.
   * @param isRefused true if the order was not made: an equal one that has begun meanwhile is another one
   */
  forget(isRefused = false): Promise<void> {
    return this.#replace(() => undefined, isRefused)
  }

  /** The outcome will not become known, of which the page has been told: it may make the order again. */
  renew(): Promise<void> {
    return this.#replace((kept) => this.#following ?? { ...kept, key: next(kept.key), at: Date.now() })
  }

  /** Replaces what is kept, unless it is no longer the key of this call: an equal order may have forgotten that before. */
  async #replace(following: (kept: Kept) => Kept | undefined, isRefused = false): Promise<void> {
    const place = this.#place
    if (place === undefined) return
    await underLock(place, () => {
      const kept = read(place)
      if (!kept || kept.key !== this.#own) return
      write(place, following(kept))
      for (const call of choosing) if (!isRefused && call.#place === place) call.#sent ??= kept
    })
  }
}

/**
 * The error of a kept order while nobody is logged in. The order is not sent, because after a login in another tab the server
 * would make it: another call, which orders nothing, gets the refusal of the server.
 */
async function withoutSession(core: Core, { method, path, signal = null }: ApiCall): Promise<ApiError> {
  const { ApiError } = core
  try {
    await core.ask(SESSION_PATH, { signal })
  } catch (error) {
    signal?.throwIfAborted()
    const { response, problem } = error as ApiError
    void core.store.confirm()
    return new ApiError(method, path, response, problem && { ...problem, outcome: 'unknown' }, error)
  }
  return new ApiError(method, path)
}

/** The key that follows a key, the same in every tab. */
function next(key: string): string {
  return `${key}+`
}

/** Acts while nobody else who asks for the lock of this name acts. A page without TLS has no locks. */
async function underLock<Result>(name: string, act: () => Result): Promise<Result> {
  const { navigator } = globalThis as { readonly navigator?: Partial<Navigator> }
  let hasActed = false
  const acting = (): Result => {
    hasActed = true
    return act()
  }
  try {
    if (navigator?.locks) {
      return await navigator.locks.request(name, { signal: AbortSignal.timeout(LOCK_MS) }, acting)
    }
  } catch (error) {
    if (hasActed) throw error
  }
  return act()
}

function read(place: string): Kept | undefined {
  try {
    return (JSON.parse(sessionStorage.getItem(place) ?? 'null') as Kept | null) ?? undefined
  } catch {
    // Not every page may use the storage.
    return undefined
  }
}

function write(place: string, kept: Kept | undefined): void {
  try {
    if (kept) sessionStorage.setItem(place, JSON.stringify(kept))
    else sessionStorage.removeItem(place)
  } catch {
    // Then the order is not remembered.
  }
}

/**
 * Tells orders apart, and subjects (FNV-1a, twice). If two orders had the same, the server would refuse the key of the first for the
 * second.
 */
function digest(text: string): string {
  return [0x811c9dc5, 0x9747b28c]
    .map((seed) => {
      let hash = seed
      for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
      return (hash >>> 0).toString(36)
    })
    .join('-')
}
