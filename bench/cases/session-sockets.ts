import { setTimeout as pause } from 'node:timers/promises'
import { SECRETS } from '../../test/support/server/test-server.ts'
import { makeCalls } from '../calls.ts'
import { publicOrigin, thisServer } from '../contenders.ts'
import { makeSessions } from '../made-sessions.ts'
import { handshakes, startPump } from '../pumps.ts'
import { atMost, shown, type Report } from '../report.ts'
import { startServers, type Choice, type Running } from '../rest-load.ts'
import { spread } from '../rounds.ts'

const WHOLE = { count: 3, sockets: 5000 }
const SHORT = { count: 1, sockets: 2500 }
const WARM_UP = 200
const USERS_AT_ONCE = 64
/** Time for the garbage of handshakes to be collected. */
const SETTLE_MS = 1500
const LIMIT_KIB = 10

/** Measures the memory of idle session sockets, each of a session of its own. */
export async function sessionSockets({ short = false }: Choice): Promise<Report> {
  const { count, sockets } = short ? SHORT : WHOLE
  const kib: number[] = []
  while (kib.length < count) kib.push(await kibPerSocket(sockets))
  const goal = `≤ ${LIMIT_KIB} KiB per idle session socket`
  const measured = spread(kib)
  return {
    name: 'session-sockets',
    title: 'Memory of idle session sockets',
    tables: [
      {
        title: 'The growth of resident memory divided by the number of sockets',
        columns: ['session sockets', 'KiB per socket'],
        rows: [[sockets.toLocaleString('en'), shown(measured, 1)]],
      },
    ],
    goals: [atMost(LIMIT_KIB, goal, measured, { unit: ' KiB', digits: 1 })],
    notes: [
      `${count} processes, each measured ${SETTLE_MS / 1000} s after the last socket was opened, without a forced garbage collection. ${WARM_UP} sockets had been opened and closed before.`,
      'Each session has one socket, and had been used before, so its place in the near cache is not counted.',
    ],
    raw: kib,
  }
}

/** The growth of the resident memory of a new process. */
async function kibPerSocket(sockets: number): Promise<number> {
  const { world, contenders } = await startServers([thisServer(undefined, { settings: { SESSION_SECRETS: SECRETS } })])
  const [{ program, url }] = contenders as [Running]
  const browsers = startPump('browsers')
  const cookies = await makeSessions(world, sockets)
  await makeCalls(url, sockets, USERS_AT_ONCE, (index) => ({
    headers: { cookie: cookies[index] ?? '', 'x-csrf': '1' },
  }))
  const port = Number(new URL(url).port)
  const requests = handshakes(sockets, '/ws/session', publicOrigin(port), cookies)
  const open = async (count: number): Promise<number> => {
    await browsers.order({ do: 'open', port, requests: requests.slice(0, count) })
    await pause(SETTLE_MS)
    await browsers.order({ do: 'await', sockets: count })
    return program.rssBytes()
  }
  await open(WARM_UP)
  await browsers.order({ do: 'close' })
  await pause(SETTLE_MS)
  const before = program.rssBytes()
  const after = await open(sockets)
  for (const each of [program, browsers.program]) await each.stop()
  return (after - before) / sockets / 1024
}
