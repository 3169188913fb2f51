import { setTimeout as pause } from 'node:timers/promises'
import type { Fault } from '../fault.ts'

/** A first packet is repeated after a second, so it arrives between two such times. */
const LOST_MS = 700
const APART_MS = 1500

/** Connections to the provider take a second. */
export const lostFirstPackets: Fault = {
  name: 'lost-first-packets',
  sentence: 'The first packets of some connections to the provider are lost, and nobody listens at its second address.',
  fits: ({ hasTwoAddresses }) => hasTwoAddresses === true,
  apply({ instances }) {
    const over = new AbortController()
    const losing = instances.map(async ({ way }) => {
      while (!over.signal.aborted) {
        await way?.stall()
        await pause(LOST_MS)
        way?.resume()
        await pause(APART_MS, undefined, { signal: over.signal }).catch(() => undefined)
      }
    })
    return {
      note: 'first packets to the provider are lost',
      touches: [],
      settleMs: 1000,
      async heal() {
        over.abort()
        await Promise.all(losing)
      },
    }
  },
}
