import type { ProductPromise } from '../promise.ts'

/** Connections that a process opens when it first needs them, and keeps: to each master of a Cluster, and from operators. */
const KEPT_DESCRIPTORS = 8

/** Whoever leaves, leaves nothing behind. */
export const nothingIsLeft: ProductPromise = {
  name: 'nothing-is-left',
  sentence:
    'Once users have left and faults are healed, no socket, stream, descriptor or buffered byte is left, and no key of Redis without a lifetime.',
  isTimed: false,
  check({ leftovers }) {
    return {
      judged: leftovers.map(({ at }) => at),
      violations: leftovers.flatMap(({ at, gauges, upstreamSockets, feedSockets, lastingKeys, processes }) =>
        [
          ...gauges
            .filter(({ value }) => value !== 0)
            .map(({ instance, name, value }) => `${name} of instance ${instance} is still ${value}`),
          ...(upstreamSockets === feedSockets
            ? []
            : [`upstream has ${upstreamSockets} sockets, of which the instances know ${feedSockets}`]),
          ...lastingKeys.map((key) => `the key ${key} of Redis has no lifetime`),
          ...processes
            .filter(({ before, after }) => after > before + feedSockets + KEPT_DESCRIPTORS)
            .map(
              ({ name, pid, before, after }) => `process ${pid} of ${name} has ${after} descriptors, and had ${before}`,
            ),
        ].map((seen) => ({ at, seen })),
      ),
    }
  },
}
