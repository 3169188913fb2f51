import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { askRedis } from '../support/redis/topologies.ts'
import type { Fleet } from './fleet.ts'
import type { Leftover, ProcessState } from './states.ts'
import { nothingIsLeft } from './promises/nothing-is-left.ts'
import { sampleOf } from './samples.ts'

/** What is left is looked at again for so long, because connections wait for their next use, and streams for their next page. */
const SETTLES_MS = 20_000
const AGAIN_MS = 500
/** Asks for all keys that live for ever. */
const LASTING = `local lasting = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  if redis.call('PTTL', key) == -1 then lasting[#lasting + 1] = key end
end
return lasting`

/** What each process of the servers holds. */
export async function processesOf({ observer, instances }: Fleet): Promise<ProcessState[]> {
  const all = observer.instances.flatMap(({ pids }, instance) => pids().map((pid) => ({ pid, instance })))
  return Promise.all(
    all.map(async ({ pid, instance }) => ({
      pid,
      name: instances[instance]?.name ?? '',
      descriptors: (await readdir(`/proc/${pid}/fd`).catch(() => [])).length,
      megabytes: residentIn(await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')),
    })),
  )
}

const residentIn = (status: string): number => Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) / 1024

/** Waits until nothing is left of users who have gone, or as long as that may take at most. @param before the same at the start */
export async function settled(fleet: Fleet, before: readonly ProcessState[]): Promise<Leftover> {
  const { now, history } = fleet.observer
  // Browsers keep connections that they may use again.
  for (const { links } of fleet.instances) links.browsers.add({ refuses: true })
  for (const endsAt = now() + SETTLES_MS; ; await pause(AGAIN_MS)) {
    const left = await leftover(fleet, before)
    const { violations } = nothingIsLeft.check({ ...history, leftovers: [left] })
    if (violations.length === 0 || now() > endsAt) return left
  }
}

async function leftover(fleet: Fleet, before: readonly ProcessState[]): Promise<Leftover> {
  const { observer, instances, upstream, redis } = fleet
  const samples = await Promise.all(instances.map((instance) => sampleOf(fleet, instance)))
  const keys = await Promise.all((await redis.masters()).map((master) => askRedis(master, ['EVAL', LASTING, '0'])))
  const { public: prices, demo, real } = upstream.sockets()
  return {
    at: observer.now(),
    silent: samples.flatMap((sample, instance) => (sample === undefined ? [instance] : [])),
    gauges: samples.flatMap((sample) => sample?.gauges ?? []),
    feedSockets: samples.reduce((sum, sample) => sum + (sample?.feedSockets ?? 0), 0),
    upstreamSockets: prices + demo + real,
    lastingKeys: keys.flat().map(String),
    processes: (await processesOf(fleet)).flatMap((after) => {
      const earlier = before.find(({ pid }) => pid === after.pid)
      return earlier === undefined ? [] : [{ before: earlier, after }]
    }),
  }
}
