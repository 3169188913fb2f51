import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

/** The peers of an instance that have names of their own. */
export const NAMED = ['provider', 'upstream'] as const

/** The name server of a fleet. It knows names that end with `.test`, all of which are this machine. */
export interface FleetNames {
  /** Options of Node.js with which an instance asks it. */
  readonly options: readonly string[]
  /** From now on it answers nothing about this peer. @returns ends that */
  readonly silence: (peer: (typeof NAMED)[number]) => () => void
}

/** Starts one. It ends with the test. @param hasTwoAddresses whether it names a second address of the provider */
export function fleetNames(t: Test, hasTwoAddresses = false): FleetNames {
  const folder = mkdtempSync(join(tmpdir(), 'nemesis-names-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const preload = new URL('named-peers.ts', import.meta.url)
  preload.searchParams.set('silent', folder)
  if (hasTwoAddresses) preload.searchParams.set('two', hostOf('provider'))
  return {
    options: ['--import', preload.href],
    silence(peer) {
      const mark = join(folder, hostOf(peer))
      writeFileSync(mark, '')
      return () => rmSync(mark, { force: true })
    },
  }
}

/** The name of a peer. */
export const hostOf = (peer: (typeof NAMED)[number]): string => `${peer}.test`
