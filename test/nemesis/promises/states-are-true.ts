import { faultsDuring } from '../explained.ts'
import { slackMs, type History, type Socket } from '../history.ts'
import type { Sample } from '../states.ts'
import type { ProductPromise, Violation } from '../promise.ts'

/** All instances obey within this time, and count what has opened or closed. */
const KNOWN_MS = 2000
/** A sample says nothing if something could not run for longer than this meanwhile. */
const MOST_DELAY_MS = 1000

/** Instances say of themselves what is true, while nothing is broken. */
export const statesAreTrue: ProductPromise = {
  name: 'states-are-true',
  sentence:
    'While no fault is on, each instance is ready, counts the sockets that pages have, and says that orders are paused if, and only if, they are.',
  isTimed: true,
  check(history) {
    const samples = history.samples.filter(
      ({ from, to, instance }) =>
        faultsDuring(history, from - KNOWN_MS, to).length === 0 &&
        slackMs(history, from - KNOWN_MS, to, instance) < MOST_DELAY_MS,
    )
    return {
      judged: samples.map(({ from }) => from),
      violations: samples.flatMap((sample) =>
        unready(sample).concat(
          untruePauses(history, sample),
          untrueSockets(history, sample, 'public', sample.publicSockets),
          untrueSockets(history, sample, 'trading', sample.tradingSockets),
        ),
      ),
    }
  },
}

function unready({ from, instance, status }: Sample): Violation[] {
  return status === 200
    ? []
    : [{ at: from, seen: `/readyz of instance ${instance} responds ${status}, and nothing is broken` }]
}

function untruePauses({ pauses }: History, { from, to, instance, pauses: told }: Sample): Violation[] {
  const isSurelyOn = pauses.some(
    ({ confirmedAt = Infinity, liftAskedAt = Infinity }) => confirmedAt + KNOWN_MS < from && liftAskedAt > to,
  )
  const isSurelyOff = pauses.every(({ askedAt, liftedAt = Infinity }) => askedAt > to || liftedAt + KNOWN_MS < from)
  if (isSurelyOn && told === 0)
    return [{ at: from, seen: `instance ${instance} says that orders are not paused, and they are` }]
  return isSurelyOff && told > 0
    ? [{ at: from, seen: `instance ${instance} says that orders are paused, and they are not` }]
    : []
}

/** Those that open or close around the moment may be counted or not. */
function untrueSockets(
  history: History,
  { from, to, instance }: Sample,
  kind: Socket['kind'],
  told: number,
): Violation[] {
  const own = history.sockets.filter((each) => each.kind === kind && each.instance === instance)
  const least = own.filter(
    (each) =>
      (each.received[0]?.at ?? Infinity) < from &&
      (each.closedAt ?? (each.isClosedByPage ? 0 : Infinity)) > to + KNOWN_MS,
  )
  const most = own.filter((each) => each.openedAt < to && (each.closedAt ?? Infinity) + KNOWN_MS > from)
  const opening = history.calls.filter(
    (each) =>
      each.kind === 'socket' &&
      each.instance === instance &&
      each.path.includes(kind) &&
      each.result !== 'ok' &&
      each.at < to &&
      (each.until ?? Infinity) + KNOWN_MS > from,
  )
  const elsewhere =
    kind === 'public'
      ? []
      : history.pageSockets.filter((each) => each.at < to && (each.closedAt ?? Infinity) + KNOWN_MS > from)
  const atMost = most.length + opening.length + elsewhere.length
  if (told >= least.length && told <= atMost) return []
  const range = `${least.length} to ${atMost}`
  return [{ at: from, seen: `instance ${instance} says that ${told} ${kind} sockets are open, and ${range} are` }]
}
