import { setTimeout as pause } from 'node:timers/promises'
import { THIS_SERVER } from '../contenders.ts'
import { closeRelays, handshakes, openRelays } from '../pumps.ts'
import { startRelays, type RelayContender, type RelayStage } from '../relay-contenders.ts'
import { atMost, type Report } from '../report.ts'
import type { Choice } from '../rest-load.ts'

const COUNTS = [1, 100, 5000] as const
const WARM_UP = 200
/** Time for the garbage of handshakes to be collected. */
const SETTLE_MS = 1500
const LIMIT_KIB = 25

/** Resident memory in bytes by the number of idle relays; 0 is the process after the warm-up. */
type Resident = ReadonlyMap<number, number>

/** Measures the memory of idle relays: both sockets, in the process of the relay. */
export async function memory(choice: Choice): Promise<Report> {
  const stage = await startRelays(choice)
  const results = new Map<string, Resident>()
  for (const contender of stage.contenders) results.set(contender.name, await measure(stage, contender))
  const perRelay = kibEach(results.get(THIS_SERVER), Math.max(...COUNTS))
  return {
    name: 'memory',
    title: 'Memory of idle relays',
    tables: [
      {
        title: 'KiB per relay, both sockets: the growth of resident memory divided by the number of relays',
        columns: ['', ...COUNTS.slice(1).map((count) => `at ${count.toLocaleString('en')}`)],
        rows: rows(results, (resident) => COUNTS.slice(1).map((count) => kibEach(resident, count).toFixed(1))),
      },
      {
        title: 'Resident memory, MiB',
        columns: ['', '0, after the warm-up', ...COUNTS.map((count) => count.toLocaleString('en'))],
        rows: rows(results, (resident) => [...resident.values()].map((bytes) => (bytes / 1024 ** 2).toFixed(0))),
      },
    ],
    goals: [
      atMost(LIMIT_KIB, `≤ ${LIMIT_KIB} KiB per idle relay, both sockets`, perRelay, { unit: ' KiB', digits: 1 }),
    ],
    notes: [
      `Public relays without any messages, measured ${SETTLE_MS / 1000} s after the last one was opened, without a forced garbage collection. ${WARM_UP} relays had been opened and closed before.`,
      'With few relays, most of the figure is garbage of the handshakes.',
    ],
    raw: results,
  }
}

function rows(results: ReadonlyMap<string, Resident>, cells: (resident: Resident) => string[]): string[][] {
  return [...results].map(([name, resident]) => [name].concat(cells(resident)))
}

async function measure(stage: RelayStage, { program, port, path, origin }: RelayContender): Promise<Resident> {
  const resident = new Map<number, number>()
  for (const count of [WARM_UP, ...COUNTS]) {
    await openRelays(stage, port, handshakes(count, path, origin))
    await pause(SETTLE_MS)
    if (count !== WARM_UP) resident.set(count, program.rssBytes())
    await closeRelays(stage)
    await pause(SETTLE_MS)
    if (count === WARM_UP) resident.set(0, program.rssBytes())
  }
  return resident
}

function kibEach(resident: Resident | undefined, count: number): number {
  return ((resident?.get(count) ?? Number.NaN) - (resident?.get(0) ?? Number.NaN)) / count / 1024
}
