import { setTimeout as pause } from 'node:timers/promises'
import { ACCOUNTS } from '../../support/user.ts'
import type { Fleet } from '../fleet.ts'
import type { Page } from './page.ts'
import type { OpenSocket } from './sockets.ts'

/** Longer than any instance may take to learn of an end. */
const GOES_ON_MS = 4000
const AGAIN_SOON_MS = 150
/** Where Redis can fail over, it may bring a session back only later. */
const COMES_BACK_MS = 24_000
const AGAIN_LATER_MS = 1500
/** A socket goes on for longer: one instance may stand still, and wake with what has come meanwhile. */
const TRADES_ON_MS = 6000

/** Goes on with the cookie of a session that is about to end, until the run is over or nothing can bring the session back. */
export async function goOn(copy: Page, over: AbortSignal): Promise<void> {
  const { plan, observer } = copy.fleet
  const from = observer.now()
  const forMs = plan.redis === 'single' ? GOES_ON_MS : COMES_BACK_MS
  for (
    let passedMs = 0;
    passedMs < forMs && !(over.aborted && passedMs > GOES_ON_MS);
    passedMs = observer.now() - from
  ) {
    await copy.ask({ kind: 'read', method: 'GET', path: ACCOUNTS })
    await pause(passedMs < GOES_ON_MS ? AGAIN_SOON_MS : AGAIN_LATER_MS)
  }
}

/** Goes on with the trading socket of such a session until the server closes it, by purchases and by pings. */
export async function goOnTrading(socket: OpenSocket, { observer: { now } }: Fleet, buy: () => void): Promise<void> {
  const endsAt = now() + TRADES_ON_MS
  for (let nth = 0; now() < endsAt && socket.noted.closedAt === undefined; nth++) {
    if (nth % 2 === 0) socket.send({ ping: 1 })
    else buy()
    await pause(AGAIN_SOON_MS)
  }
  socket.close()
}
