import type { Controls } from '../../controls/controls.ts'
import type { Session } from '../../sessions/index.ts'
import { ordersPaused, readPaused } from './paused-message.ts'

/** A message passes, is answered with this refusal, or has to wait until more is known. */
type Passage = 'passes' | Buffer | Promise<void>

/** What pages are told while nobody here knows whether orders are paused. */
const UNREAD = 'Orders cannot be sent right now. Please try again in a moment.'

/** Decides which messages of a browser reach upstream. */
export interface OrderGate {
  /** Whether messages must be judged at present. If not, none is looked at. */
  readonly isClosed: boolean
  judge(message: Buffer, isBinary: boolean): Passage
  /** Calls a listener whenever it may have closed, or closed to more messages. Returns a function that ends this. */
  onClosed(listener: () => void): () => void
}

/** The gate of a trading socket: while orders of its user are paused, only messages that are certainly no orders pass. */
export function orderGate(controls: Controls, session: Session): OrderGate {
  return {
    get isClosed() {
      return controls.verdictOn(session) !== undefined
    },
    judge(message, isBinary) {
      const verdict = controls.verdictOn(session)
      if (verdict === undefined) return 'passes'
      const read = readPaused(message, isBinary)
      if (read.kind === 'read') return 'passes'
      if (verdict.is === 'unidentified') return controls.identify(session)
      if (verdict.is === 'unread') return ordersPaused(message, read, UNREAD)
      if (read.kind === 'closing' && verdict.closing) return 'passes'
      controls.metrics.refusals.inc({ by: 'message' })
      return ordersPaused(message, read, verdict.message)
    },
    onClosed: (listener) => controls.onPauseOf(session, listener),
  }
}
