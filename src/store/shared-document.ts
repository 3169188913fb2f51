import { randomUUID } from 'node:crypto'
import type { SubscriberEvents } from './links/channel-subscriber.ts'
import { markOf, type MarkedCommands } from './marked-reading.ts'

/** A document that was read, and the store's clock. */
export interface DocumentReading {
  /** Names what was read, for {@link SharedDocument.write}; empty where there is no document. */
  readonly version: string
  /** Empty where there is no document; undefined where the caller has said that it knows this version. */
  readonly text: string | undefined
  /** The store's clock (epoch ms). */
  readonly now: number
}

/** A text that the instances of a store write together. Each change is made to what was read before, or not at all. */
export interface SharedDocument {
  /** @param known the version whose text the caller has, so that it need not be sent @throws StoreUnavailable */
  read(known?: string): Promise<DocumentReading>
  /**
   * Replaces what was read.
   * @param ttlMs after this time the document is forgotten
   * @returns the version of what was written; undefined if another instance has replaced what was read, so that nothing was written
   * @throws StoreUnavailable
   */
  write(version: string, text: string, ttlMs: number): Promise<string | undefined>
  close(): void
}

/** The word before the version of a document that has changed. Version 2 sends other words on the same channel. */
const CHANGED = 'changed'

/**
 * Opens a document in Redis: one key, whose value is a version, a space and the text, and a channel that tells all other instances
 * of each new version. Writes succeed even when the store is full.
 * @param onChange another instance has changed the document, or may have
 */
export function openDocument(
  { key, channel }: { readonly key: string; readonly channel: string },
  onChange: () => void,
  listen: (channel: string, events: SubscriberEvents) => { close(): unknown },
  store: MarkedCommands,
): SharedDocument {
  /** The version that this instance has written last, of which it needs no news. */
  let written = ''
  const subscription = listen(channel, {
    message: (text) => {
      const [word, version] = text.split(' ')
      if (word === CHANGED && version !== written) onChange()
    },
    up: onChange,
  })
  return {
    async read() {
      const { value = '', now } = await store.readMarked(key, '')
      const version = markOf(value)
      return { version, text: value.slice(version.length + 1), now }
    },
    async write(version, text, ttlMs) {
      const next = randomUUID()
      // Before the reply, since the news of it may come first.
      written = next
      const news = { channel, text: `${CHANGED} ${next}` }
      return (await store.replaceMarked(key, version, `${next} ${text}`, ttlMs, news)) ? next : undefined
    },
    close: () => void subscription.close(),
  }
}
