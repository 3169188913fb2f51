import { setTimeout as wait } from 'node:timers/promises'
import { anyInstance, type Fault } from '../fault.ts'
import type { Fleet, Instance } from '../fleet.ts'
import { liftPause, pauseOrders } from '../operators/pauses.ts'
import { ownSecret } from './wrong-secrets.ts'

/** An instance has taken a new secret by then, and has written the controls with it. */
const TAKEN_MS = 3500
/** The others can read them by then, and what they have made of them has lasted for a while. */
const READ_MS = 7000
const LIFTS = 3

/** Orders are paused where the controls cannot be read. */
export const pauseBesideOtherSecrets: Fault = {
  name: 'pause-beside-other-secrets',
  sentence:
    'One instance writes with a secret that the others do not have yet, and a pause is lifted there. Then another operator pauses orders at an instance that cannot read of it, which obeys alone.',
  fits: ({ instances }) => instances > 1,
  lastsMs: { least: 14_000, most: 16_000 },
  apply(fleet, random) {
    const writer = anyInstance(fleet, random)
    const other = fleet.instances.find((each) => each !== writer)
    if (other === undefined) throw new Error('a fleet of one instance')
    const { note, touches, settleMs, heal } = ownSecret(fleet, writer)
    const done = operate(fleet, { writer, other, giveSecret: heal })
    return { note: `${note}, and a pause is set at ${other.name}`, touches, settleMs, heal: () => done }
  },
}

async function operate(
  fleet: Fleet,
  { writer, other, giveSecret }: { writer: Instance; other: Instance; giveSecret: () => unknown },
): Promise<void> {
  await wait(TAKEN_MS)
  for (let nth = 0; nth < LIFTS; nth++) await liftPause(fleet, () => writer, await pauseOrders(fleet, [writer]))
  const paused = await pauseOrders(fleet, [other])
  giveSecret()
  await wait(READ_MS)
  await liftPause(fleet, () => writer, paused)
}
