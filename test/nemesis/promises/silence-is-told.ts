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
    const heard = all.map((socket) => ({ socket, pongs: timesOf(socket, isPong), prices: timesOf(socket, isPrice) }))
    return {
      judged: heard.flatMap(({ pongs }) => pongs),
      violations: heard.flatMap((each) => falselyCalm(history, each)),
    }
  },
}

/** A socket with the times of what has come on it. */
interface Heard {
  readonly socket: Socket
  readonly pongs: readonly number[]
  readonly prices: readonly number[]
}

function falselyCalm(history: History, { socket, pongs, prices }: Heard): Violation[] {
  const { user, kind, instance } = socket
  return pongs.flatMap((at) => {
    const before = prices.findLast((price) => price <= at)
    if (before === undefined || at - before <= SILENT_MS) return []
    if (prices.some((price) => price > at && price < at + MARGIN_MS)) return []
    const silentMs = at - before
    if (silentMs <= SILENT_MS + slackMs(history, before, at)) return []
    const seen = `${user}: the ${kind} socket by instance ${instance} has answered a ping ${Math.round(silentMs)} ms after the last price`
    return [{ at, seen }]
  })
}

function timesOf({ received }: Socket, isWanted: (message: Message) => boolean): number[] {
  return received.filter(isWanted).map(({ at }) => at)
}

const isPong = ({ text }: Message): boolean => text.includes('"pong"')
const isPrice = ({ text }: Message): boolean => text.includes('"tick"')
