/** What a reading of a {@link SharedDocument} finds. */
export interface DocumentReading {
  /** Names what was read, for {@link SharedDocument.write}; empty where there is no document. */
  readonly version: string
  /** Empty where there is no document. */
  readonly text: string
  /** The store's clock (epoch ms). */
  readonly now: number
}

/** A short text that the instances of a store write together. Each change is made to what was read before, or not at all. */
export interface SharedDocument {
  /** @throws StoreUnavailable */
  read(): Promise<DocumentReading>
  /**
   * Replaces what was read. Returns false, and writes nothing, if another instance has replaced it since. Succeeds even when the
   * store is full. All other instances are told.
   * @param ttlMs after this time the document is forgotten
   * @throws StoreUnavailable
   */
  write(version: string, text: string, ttlMs: number): Promise<boolean>
  close(): void
}
