import { Worker } from 'node:worker_threads'
import { anyInstance, type Fault } from '../fault.ts'
import { oneOf } from '../whom.ts'

/** What they send, again and again, each on a new connection when the server has closed the last one. */
const WAYS = ['requests together', 'bodies in tiny chunks', 'cookies of logins', 'pings'] as const

/** Where they go, and what they send. */
export interface StrangersData {
  readonly port: number
  readonly host: string
  readonly way: (typeof WAYS)[number]
}

/** Strangers try to keep an instance busy. */
export const strangers: Fault = {
  name: 'strangers',
  sentence:
    'A dozen connections of people without a session send one instance requests together, bodies in tiny chunks, made-up cookies of logins, or pings on public sockets, again and again.',
  apply(fleet, random) {
    const { name, process } = anyInstance(fleet, random)
    const way = oneOf(WAYS, random)
    const workerData: StrangersData = { port: process.port, host: new URL(fleet.publicUrl).host, way }
    const worker = new Worker(new URL('../users/strangers.ts', import.meta.url), { workerData })
    return {
      note: `${name} gets ${way}`,
      touches: [],
      settleMs: 1000,
      heal: async () => void (await worker.terminate()),
    }
  },
}
