import { setTimeout as pause } from 'node:timers/promises'
import { THIS_SERVER } from '../contenders.ts'
import { closeRelays, handshakes, openRelays } from '../pumps.ts'
import { startRelays, type RelayContender, type RelayStage } from '../relay-contenders.ts'
import type { Report } from '../report.ts'
import type { Choice } from '../rest-load.ts'

const COUNTS = [1, 100, 5000] as const
const WARM_UP = 200
/** For what handshakes left behind to be collected. */
const SETTLE_MS = 1500
const LIMIT_KIB = 25

/** Resident memory by number of idle relays; 0 is the process warmed up. */
type Resident = ReadonlyMap<number, number>

/** What idle relays take: both sockets, in the process of the relay. */
export async function memory(choice: Choice): Promise<Report> {
  const stage = await startRelays(choice)
  const found = new Map<string, Resident>()
  for (const contender of stage.contenders) found.set(contender.name, await measure(stage, contender))
  const [own] = COUNTS.slice(-1).map((count) => kibEach(found.get(THIS_SERVER), count))
  const perRelay = own ?? Number.NaN
  return {
    name: 'memory',
    title: 'Memory of idle relays',
    tables: [
      {
        title: 'KiB a relay, both sockets: what resident memory grew by, through the number of relays',
        columns: ['', ...COUNTS.slice(1).map((count) => `at ${count.toLocaleString('en')}`)],
        rows: row(found, (resident) => COUNTS.slice(1).map((count) => kibEach(resident, count).toFixed(1))),
      },
      {
        title: 'Resident memory, MiB',
        columns: ['', 'warmed up, none', ...COUNTS.map((count) => count.toLocaleString('en'))],
        rows: row(found, (resident) => [...resident.values()].map((bytes) => (bytes / 1024 ** 2).toFixed(0))),
      },
    ],
    goals: [
      {
        goal: `≤ ${LIMIT_KIB} KB an idle relay, both sockets`,
        measured: `${perRelay.toFixed(1)} KiB`,
        isMet: perRelay <= LIMIT_KIB,
      },
    ],
    notes: [
      `Public relays, on which nothing was sent; measured ${SETTLE_MS / 1000} s after the last was opened, no collection forced. ${WARM_UP} relays had been opened and closed before.`,
      'With few relays the figure is mostly what handshakes left to be collected.',
    ],
    raw: Object.fromEntries([...found].map(([name, resident]) => [name, Object.fromEntries(resident)])),
  }
}

function row(found: ReadonlyMap<string, Resident>, cells: (resident: Resident) => string[]): string[][] {
  return [...found].map(([name, resident]) => [name].concat(cells(resident)))
}

async function measure(ends: RelayStage, { program, port, path, origin }: RelayContender): Promise<Resident> {
  const resident = new Map<number, number>()
  for (const count of [WARM_UP, ...COUNTS]) {
    await openRelays(ends, port, handshakes(count, path, origin))
    await pause(SETTLE_MS)
    if (count !== WARM_UP) resident.set(count, program.rssBytes())
    await closeRelays(ends)
    await pause(SETTLE_MS)
    if (count === WARM_UP) resident.set(0, program.rssBytes())
  }
  return resident
}

function kibEach(resident: Resident | undefined, count: number): number {
  return ((resident?.get(count) ?? Number.NaN) - (resident?.get(0) ?? Number.NaN)) / count / 1024
}
