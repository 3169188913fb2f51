import { subscribe } from 'node:diagnostics_channel'
import type { LookupAddress } from 'node:dns'
import type { Socket } from 'node:net'
import { standstill } from '../time/standstill.ts'

/** For so long an address comes last that was silent when it was tried before another one, or that has failed after it had accepted. */
const LAST_MS = 60_000
const MAX_ADDRESSES = 256

/** When they were silent, in ms of the clock of {@link standstill}. */
const silent = new Map<string, number>()

/**
 * The addresses in the order in which they are to be tried: those last that were silent, since every connection would wait for
 * them again, and of both families in turn, since one of these may lead nowhere (RFC 8305 §4).
 */
export function inTurn(addresses: readonly LookupAddress[]): LookupAddress[] {
  if (silent.size === 0) return alternating(addresses)
  const last = new Set(addresses.filter(({ address }) => isSilent(address)))
  return [...alternating(addresses.filter((each) => !last.has(each))), ...alternating([...last])]
}

function isSilent(address: string): boolean {
  const since = silent.get(address)
  if (since === undefined) return false
  const now = standstill.now()
  if (now - since < LAST_MS) return true
  // One connection finds out whether it still is. An address that accepts, and fails in TLS, would fail all that come meanwhile.
  silent.set(address, now)
  return false
}

function alternating(addresses: readonly LookupAddress[]): LookupAddress[] {
  const first = addresses.filter(({ family }) => family === addresses[0]?.family)
  const other = addresses.filter(({ family }) => family !== addresses[0]?.family)
  const longest = Math.max(first.length, other.length)
  return Array.from({ length: longest }, (_, at) => [first[at], other[at]])
    .flat()
    .filter((each) => each !== undefined)
}

/**
 * Remembers that an address was silent when it was tried before another one, or has failed after it had accepted, or that it
 * has answered.
 * @param address undefined where it is not known any more
 */
export function noteSilence(address: string | undefined, isSilent: boolean): void {
  if (address === undefined) return
  silent.delete(address)
  if (!isSilent) return
  const [oldest] = silent.keys()
  if (silent.size >= MAX_ADDRESSES && oldest !== undefined) silent.delete(oldest)
  silent.set(address, standstill.now())
}

// Libraries that open connections themselves give no other access to their sockets before they are connected.
subscribe('net.client.socket', (message) => {
  const { socket } = message as { readonly socket: Socket }
  socket.on('connectionAttemptTimeout', (address: string) => noteSilence(address, true))
  // Of the other connections, whoever opens them knows better whether all is well.
  socket.once('connect', () => {
    if (socket.autoSelectFamilyAttemptedAddresses !== undefined) noteSilence(socket.remoteAddress, false)
  })
})
