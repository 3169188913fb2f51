import { slackMs, type History, type Message, type Socket } from '../history.ts'
import type { ProductPromise, Violation } from '../promise.ts'

/** Upstream sends several prices a second. After so long without one, it counts as silent. */
const SILENT_MS = 8000
/** What upstream says after a silence may come in another order. */
const MARGIN_MS = 1500

/** A page must not take a dead feed for a calm one. */
export const silenceIsTold: ProductPromise = {
  name: 'silence-is-told',
  sentence: 'A page that waits for prices and has had none for long gets no answer to a ping either.',
  isTimed: true,
  check(history) {
    // Whoever has forgotten a stream waits for nothing.
    const all = history.sockets.filter(({ sent }) => !sent.some(({ text }) => text.includes('"forget')))
    const pongs = all.flatMap((socket) => socket.received.filter(isPong).map((pong) => ({ socket, at: pong.at })))
    return { judged: pongs.map(({ at }) => at), violations: pongs.flatMap((pong) => falselyCalm(history, pong)) }
  },
}

function falselyCalm(history: History, { socket, at }: { socket: Socket; at: number }): Violation[] {
  const prices = socket.received.filter(isPrice)
  const before = prices.findLast((price) => price.at <= at)
  if (before === undefined || prices.some((price) => price.at > at && price.at < at + MARGIN_MS)) return []
  const silentMs = at - before.at
  if (silentMs <= SILENT_MS + slackMs(history, before.at, at)) return []
  const { user, kind, instance } = socket
  const seen = `${user}: the ${kind} socket by instance ${instance} has answered a ping ${Math.round(silentMs)} ms after the last price`
  return [{ at, seen }]
}

const isPong = ({ text }: Message): boolean => text.includes('"pong"')
const isPrice = ({ text }: Message): boolean => text.includes('"tick"')
