import { setTimeout as pause } from 'node:timers/promises'
import { randomFrom } from '../../../sandbox/upstream/market.ts'
import { control } from '../../support/controls/controls-world.ts'
import { operate } from '../../support/login/identity.ts'
import type { Fleet, Instance } from '../fleet.ts'
import type { Ending, Pause } from '../history.ts'
import type { Actor } from '../plan.ts'

const APART_MS = { least: 4000, most: 9000 }
const PAUSES_MS = { least: 1500, most: 4000 }
/** An operator waits so long for an instance. */
const PATIENCE_MS = 5000
const AGAIN_MS = 500

/** Acts as an operator until the run is over: pauses orders and lifts that, ends all sessions of somebody, and scrapes the metrics. */
export async function actAsOperator({ seed }: Actor, fleet: Fleet, over: AbortSignal): Promise<void> {
  const random = randomFrom(seed)
  const instance = (): Instance => fleet.instances[Math.floor(random() * fleet.instances.length)] as Instance
  while (!over.aborted) {
    await pause(between(APART_MS, random), undefined, { signal: over }).catch(() => undefined)
    if (over.aborted) return
    const chance = random()
    if (chance < 0.4) await pauseOrders(fleet, instance, between(PAUSES_MS, random))
    else if (chance < 0.7) await endSessions(fleet, random, instance)
    else await asked(fetch(`${opsUrl(instance())}/metrics`).then((response) => response.text()))
  }
}

const between = ({ least, most }: typeof APART_MS, random: () => number): number => least + random() * (most - least)

async function pauseOrders(
  { observer: { now, history } }: Fleet,
  instance: () => Instance,
  forMs: number,
): Promise<void> {
  const paused: Pause = { askedAt: now(), confirmedAt: undefined, liftAskedAt: undefined, liftedAt: undefined }
  history.pauses.push(paused)
  const at = { opsUrl: opsUrl(instance()) }
  if ((await asked(control(at, 'PUT', '/orders', { paused: true })))?.status === 200) paused.confirmedAt = now()
  await pause(forMs)
  paused.liftAskedAt = now()
  // It must be lifted in the end, whoever is away at the moment.
  while ((await asked(control({ opsUrl: opsUrl(instance()) }, 'DELETE', '/orders')))?.status !== 200)
    await pause(AGAIN_MS)
  paused.liftedAt = now()
}

/** Ends all sessions of somebody who has one. Upstream was asked whose each of them is. */
async function endSessions(
  { observer: { now, history } }: Fleet,
  random: () => number,
  instance: () => Instance,
): Promise<void> {
  const identified = history.executed.flatMap(({ session, response }) => {
    const subject = /"user_id":"([\w-]+)"/.exec(response)?.[1]
    return subject === undefined || session === undefined ? [] : [{ subject, session }]
  })
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
  const answer = await asked(operate({ opsUrl: opsUrl(instance()) }, 'DELETE', { subject }))
  if (answer?.status === 200) for (const ending of endings) ending.confirmedAt = now()
}

/** What was answered; undefined if nothing was, or not in time. */
async function asked<Value>(answer: Promise<Value>): Promise<Value | undefined> {
  return Promise.race([answer.catch(() => undefined), pause(PATIENCE_MS, undefined, { ref: false })])
}

const opsUrl = ({ process }: Instance): string => `http://127.0.0.1:${process.opsPort}`
