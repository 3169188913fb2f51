import { setTimeout as pause } from 'node:timers/promises'
import { samplesIn } from '../support/telemetry/metrics.ts'
import { sendTo } from '../support/user.ts'
import type { Fleet, Instance } from './fleet.ts'
import type { Sample } from './states.ts'

const EVERY_MS = 2500
const PATIENCE_MS = 4000
/** Gauges that are 0 when nobody is there. */
const OF_USERS = [
  'bff_relays',
  'bff_feed_subscribers',
  'bff_feed_streams',
  'bff_feed_own_sockets',
  'bff_relay_buffered_bytes',
]

/** What an instance says of itself; undefined if it says nothing, or not soon. */
export async function sampleOf({ observer }: Fleet, { at: instance, process }: Instance): Promise<Sample | undefined> {
  const from = observer.now()
  // Connections that the harness keeps would count as those of users.
  const asked = Promise.all([sendTo(process.opsPort, 'GET', '/readyz'), sendTo(process.opsPort, 'GET', '/metrics')])
  try {
    const answers = await Promise.race([asked, pause(PATIENCE_MS, undefined, { ref: false })])
    if (answers === undefined) return undefined
    const [{ status }, { text: metrics }] = answers
    const sum = (name: string, only = /(?:)/): number =>
      [...samplesIn(metrics, name)].reduce((all, [labels, value]) => all + (only.test(labels) ? value : 0), 0)
    return {
      from,
      to: observer.now(),
      instance,
      status,
      publicSockets: sum('bff_relays', /public/),
      tradingSockets: sum('bff_relays', /demo|real/),
      pauses: sum('bff_orders_paused'),
      feedSockets: sum('bff_feed_upstream_sockets'),
      gauges: OF_USERS.map((name) => ({ instance, name, value: sum(name) })),
    }
  } catch {
    return undefined
  }
}

/** Notes what the instances say of themselves, until the run is over. */
export async function takeSamples(fleet: Fleet, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    const samples = await Promise.all(fleet.instances.map((instance) => sampleOf(fleet, instance)))
    fleet.observer.history.samples.push(...samples.filter((sample) => sample !== undefined))
    await pause(EVERY_MS, undefined, { signal: over }).catch(() => undefined)
  }
}
