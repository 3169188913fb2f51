/** A value that was read, unless the caller knew it. */
export interface MarkedReading {
  /** Undefined where there is no value, and where it has the mark that the caller knows. */
  readonly value: string | undefined
  /** Whether the value has the mark that the caller knows. */
  readonly isKnown: boolean
  /** The store's clock (epoch ms). */
  readonly now: number
}

/** The commands on values that begin with a mark of their own and a space. */
export interface MarkedCommands {
  /**
   * Reads a value, and the store's clock. Costs one short reply while nothing changes.
   * @param mark that of the value which the caller has read last; empty for none
   * @throws StoreUnavailable
   */
  readMarked(key: string, mark: string): Promise<MarkedReading>
  /**
   * Replaces the value with this mark, and tells all instances on a channel. Returns false, and writes nothing, if the value has
   * another mark. Succeeds even when the store is full.
   * @param mark empty for no value
   * @throws StoreUnavailable
   */
  replaceMarked(
    key: string,
    mark: string,
    value: string,
    ttlMs: number,
    news: { readonly channel: string; readonly text: string },
  ): Promise<boolean>
}

/** The mark of a text: its first word. */
export function markOf(text: string): string {
  return text.split(' ', 1)[0] ?? ''
}
