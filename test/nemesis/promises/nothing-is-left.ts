import type { Leftover } from '../states.ts'
import type { ProductPromise } from '../promise.ts'

/** Connections that a process opens when it first needs them, and keeps: to each master of a Cluster, and from operators. */
const KEPT_DESCRIPTORS = 8

/** What caches and compiled code may take in a run of minutes, which is far more than they do: only a leak of much is seen. */
const GROWN_MEGABYTES = 200

/** Whoever leaves, leaves nothing behind. */
export const nothingIsLeft: ProductPromise = {
  name: 'nothing-is-left',
  sentence:
    'Once users have left and faults are healed, no socket, stream, descriptor or buffered byte is left, and neither much memory nor a key of Redis without a lifetime.',
  isTimed: false,
  check({ leftovers }) {
    return {
      judged: leftovers.map(({ at }) => at),
      violations: leftovers.flatMap(({ at, silent, gauges, upstreamSockets, feedSockets, lastingKeys, processes }) =>
        [
          ...silent.map((instance) => `instance ${instance} does not say what is left`),
          ...gauges
            .filter(({ value }) => value !== 0)
            .map(({ instance, name, value }) => `${name} of instance ${instance} is still ${value}`),
          ...(upstreamSockets === feedSockets
            ? []
            : [`upstream has ${upstreamSockets} sockets, of which the instances know ${feedSockets}`]),
          ...lastingKeys.map((key) => `the key ${key} of Redis has no lifetime`),
          ...processes.flatMap((each) => grown(each, feedSockets)),
        ].map((seen) => ({ at, seen })),
      ),
    }
  },
}

function grown({ before, after }: Leftover['processes'][number], feedSockets: number): string[] {
  const process = `process ${after.pid} of ${after.name}`
  const more = after.megabytes - before.megabytes
  return [
    ...(after.descriptors > before.descriptors + feedSockets + KEPT_DESCRIPTORS
      ? [`${process} has ${after.descriptors} descriptors, and had ${before.descriptors}`]
      : []),
    ...(more > GROWN_MEGABYTES ? [`${process} has ${Math.round(more)} MB more than at the start`] : []),
  ]
}
