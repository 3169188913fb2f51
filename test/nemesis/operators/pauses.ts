import { setTimeout as pause } from 'node:timers/promises'
import { control } from '../../support/controls/controls-world.ts'
import type { Fleet, Instance } from '../fleet.ts'
import type { Pause } from '../history.ts'

/** An operator waits so long for an instance. */
const PATIENCE_MS = 5000
const AGAIN_MS = 500
/** The words of an instance that cannot tell the others. */
const HERE_ONLY = /only this instance obeys/

/** Pauses the orders of all users, or of one, by a request to each of these instances at the same moment. */
export async function pauseOrders(
  { observer: { now, history } }: Fleet,
  instances: readonly Instance[],
  subject?: string,
): Promise<Pause> {
  const paused: Pause = { subject, askedAt: now(), confirmedAt: undefined, liftAskedAt: undefined, liftedAt: undefined }
  const body = { paused: true, ...(subject !== undefined && { subject }) }
  history.pauses.push(paused)
  const answers = await Promise.all(
    instances.map((each) =>
      asked((signal) => control({ opsUrl: opsUrl(each) }, 'PUT', '/orders', body, undefined, signal)),
    ),
  )
  if (answers.every((answer) => answer?.status === 200)) paused.confirmedAt = now()
  const [instance] = instances
  if (instances.length === 1 && HERE_ONLY.test(String(answers[0]?.json['error'])))
    paused.here = { instance: instance?.at, at: now() }
  return paused
}

/** Lifts a pause, and with it those of others that concern the same; it must be lifted in the end, whoever is away at the moment. */
export async function liftPause(
  { observer: { now, history } }: Fleet,
  instance: () => Instance,
  paused: Pause,
): Promise<void> {
  const askedAt = now()
  // Which of two requests at the same moment comes last is not known.
  const same = (): Pause[] => history.pauses.filter(({ subject }) => subject === paused.subject)
  const end = (): void => same().forEach((each) => (each.liftAskedAt ??= askedAt))
  const path =
    paused.subject === undefined ? '/orders' : `/orders?${new URLSearchParams({ subject: paused.subject }).toString()}`
  end()
  const lift = (signal: AbortSignal) =>
    control({ opsUrl: opsUrl(instance()) }, 'DELETE', path, undefined, undefined, signal)
  while ((await asked(lift))?.status !== 200) await pause(AGAIN_MS)
  end()
  paused.liftedAt = now()
}

/** What was answered; undefined if nothing was, or not in time: then the operator leaves. */
export async function asked<Value>(ask: (signal: AbortSignal) => Promise<Value>): Promise<Value | undefined> {
  const answer = ask(AbortSignal.timeout(PATIENCE_MS)).catch(() => undefined)
  return Promise.race([answer, pause(PATIENCE_MS, undefined, { ref: false })])
}

/** The address of the ops listener. */
export const opsUrl = ({ process }: Instance): string => `http://127.0.0.1:${process.opsPort}`
