import type { Test } from 'tap'
import type { SocketError } from '../../../client/src/core/base/errors.ts'
import type { Message } from '../../../client/src/core/sockets/socket-status.ts'
import { Streams } from '../../../client/src/core/sockets/streams.ts'
import { ManualTimers } from '../time/manual-timers.ts'
import { replace } from '../time/replace.ts'
import { FakeLink } from './exchange-on.ts'

/** Streams on links that a test moves, where chance is a half. @param more how many links there may be besides the first */
export function streamsOn(t: Test, more = 0) {
  replace(t, Math, 'random', () => 0.5)
  const timers = new ManualTimers(t)
  /** By their number; `opened` are all that there were. */
  const links: FakeLink[] = []
  const opened: number[] = []
  let id = 0
  const openLink = (number: number) => {
    opened.push(number)
    return (links[number] = new FakeLink()).real
  }
  const streams = new Streams(openLink, () => ++id, more)
  const linkAt = (number: number): FakeLink => {
    const link = links[number]
    if (link === undefined) throw new Error(`there is no link ${number}`)
    return link
  }
  return {
    streams,
    timers,
    linkAt,
    opened,
    /** Subscribes, and notes under this name what comes. */
    subscribe: (message: Message, name = 'it') => {
      const seen: unknown[] = []
      const stop = streams.subscribe(
        message,
        (each) => seen.push({ name, ...each }),
        ({ code, closeCode }: SocketError) => seen.push({ name, code, ...(closeCode && { closeCode }) }),
      )
      return { seen, stop }
    },
    /** Takes a message that has arrived on a link. */
    take: (message: Message, number = 0): void => streams.take(linkAt(number).real, message),
    /** What was sent on a link since it was last asked. */
    sent: (number = 0): Message[] => linkAt(number).sent.splice(0),
  }
}
