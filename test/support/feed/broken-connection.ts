import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import type { FeedWorld } from './world.ts'
import { until } from '../time/until.ts'

/** Less than what takes 10 seconds in the feed, so that a test that holds such timers still has a deadline. */
const DEADLINE_MS = 9000

/**
 * Keeps the next connection of the server waiting.
 * @returns resolves once it waits, with what lets it and all later ones be opened
 */
export function holdConnection({ upstream }: Pick<FeedWorld, 'upstream'>): () => Promise<() => void> {
  let held: [IncomingMessage, Duplex, Buffer] | undefined
  upstream.onUpgrade = (...upgrade) => void (held = upgrade)
  return async () => {
    await until(() => held !== undefined, 'the server connects', DEADLINE_MS)
    return () => {
      upstream.onUpgrade = undefined
      if (held !== undefined) upstream.accept(...held)
    }
  }
}

/** Breaks a connection. @returns lets the next one be opened, for which the server waits by then */
export function breakConnection(
  world: Pick<FeedWorld, 'upstream'>,
  socket: WebSocket | undefined,
): Promise<() => void> {
  const waiting = holdConnection(world)
  socket?.terminate()
  return waiting()
}
