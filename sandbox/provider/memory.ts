import type { Adapter, StoredPayload } from 'oidc-provider'

/** The kinds of artifacts whose id is a secret of the client. */
const SECRET_KINDS = new Set(['AccessToken', 'RefreshToken', 'AuthorizationCode'])

const TOKEN_KINDS = ['AccessToken', 'RefreshToken'] as const

/** The state of the provider, in memory only. */
export class ProviderMemory {
  /** All issued secrets, including used and revoked ones. */
  readonly issued = new Set<string>()
  /** The grant of each issued secret: the login to which it belongs. */
  readonly grants = new Map<string, string>()
  readonly #kinds = new Map<string, Map<string, StoredPayload>>()

  /** The storage of a kind of artifact. It keeps expired ones, as the library checks `exp` itself. */
  adapter(kind: string): Adapter {
    const items = this.#itemsOf(kind)
    const { issued, grants } = this
    return {
      async upsert(id, payload) {
        items.set(id, payload)
        if (!SECRET_KINDS.has(kind)) return
        issued.add(id)
        if (payload.grantId !== undefined) grants.set(id, payload.grantId)
      },
      async find(id) {
        return items.get(id)
      },
      async findByUid(uid) {
        return [...items.values()].find((payload) => payload.uid === uid)
      },
      async findByUserCode() {
        return undefined // used by the device flow only, which is off
      },
      async consume(id) {
        const payload = items.get(id)
        if (payload) payload.consumed = Math.floor(Date.now() / 1000)
      },
      async destroy(id) {
        items.delete(id)
      },
      async revokeByGrantId(grantId) {
        for (const [id, payload] of items) if (payload.grantId === grantId) items.delete(id)
      },
    }
  }

  /** How many tokens of a grant can still be used. */
  usable(grantId: string): number {
    const counts = TOKEN_KINDS.map((kind) => {
      const own = this.#itemsOf(kind).values()
      const unused = own.filter((payload) => payload.grantId === grantId && payload.consumed === undefined)
      return unused.filter(({ exp }) => Number(exp) * 1000 > Date.now()).toArray().length
    })
    return counts.reduce((sum, count) => sum + count, 0)
  }

  /** Revokes all tokens, codes and grants. Browsers stay logged in to the provider. */
  revokeAll(): void {
    for (const kind of [...SECRET_KINDS, 'Grant']) this.#itemsOf(kind).clear()
  }

  #itemsOf(kind: string): Map<string, StoredPayload> {
    const items = this.#kinds.get(kind) ?? new Map<string, StoredPayload>()
    this.#kinds.set(kind, items)
    return items
  }
}
