import { setTimeout as pause } from 'node:timers/promises'
import { randomFrom } from '../../../sandbox/upstream/market.ts'
import { operate } from '../../support/login/identity.ts'
import type { Fleet, Instance } from '../fleet.ts'
import { type Ending } from '../history.ts'
import { subjectsOf } from '../subjects.ts'
import type { Actor } from '../plan.ts'
import { rotateSecrets } from './rotation.ts'
import { asked, liftPause, opsUrl, pauseOrders } from './pauses.ts'

const APART_MS = { least: 4000, most: 9000 }
const PAUSES_MS = { least: 1500, most: 4000 }

/** The operator who does nothing but rotate secrets. */
export const KEEPER = 'keeper'

/** Acts as an operator until the run is over: pauses the orders of all users or of one and lifts that, ends all sessions of somebody, and scrapes the metrics. */
export async function actAsOperator({ name, seed }: Actor, fleet: Fleet, over: AbortSignal): Promise<void> {
  if (name === KEEPER) return rotateSecrets(fleet, over)
  const random = randomFrom(seed)
  const instance = (): Instance => fleet.instances[Math.floor(random() * fleet.instances.length)] as Instance
  while (!over.aborted) {
    await pause(between(APART_MS, random), undefined, { signal: over }).catch(() => undefined)
    if (over.aborted) return
    const chance = random()
    if (chance < 0.4) {
      // Of those who have logged in last, most are still there.
      const subjects = [...subjectsOf(fleet.observer.history).values()].slice(-5)
      const subject = random() < 0.3 ? subjects[Math.floor(random() * subjects.length)] : undefined
      const paused = await pauseOrders(fleet, [instance()], subject)
      await pause(between(PAUSES_MS, random))
      await liftPause(fleet, instance, paused)
    } else if (chance < 0.7) await endSessions(fleet, random, instance)
    else await asked(async (signal) => (await fetch(`${opsUrl(instance())}/metrics`, { signal })).text())
  }
}

const between = ({ least, most }: typeof APART_MS, random: () => number): number => least + random() * (most - least)

/** Ends all sessions of somebody who has one. Upstream was asked whose each of them is. */
async function endSessions(
  { observer: { now, history } }: Fleet,
  random: () => number,
  instance: () => Instance,
): Promise<void> {
  const identified = [...subjectsOf(history)].map(([session, subject]) => ({ session, subject }))
  const subject = identified[Math.floor(random() * identified.length)]?.subject
  if (subject === undefined) return
  const sessions = identified.filter((each) => each.subject === subject).map(({ session }) => session)
  const user = history.calls.find(({ session }) => sessions.includes(session ?? ''))?.user ?? ''
  const endings = sessions.map((session): Ending => ({
    user,
    session,
    by: 'operator',
    askedAt: now(),
    confirmedAt: undefined,
  }))
  history.endings.push(...endings)
  const answer = await asked(() => operate({ opsUrl: opsUrl(instance()) }, 'DELETE', { subject }))
  if (answer?.status === 200) for (const ending of endings) ending.confirmedAt = now()
}
