import dns from 'node:dns'
import type { Test } from 'tap'
import { names } from '../../../src/peers/names.ts'

type Answer = (error: Error | null, address: unknown, family?: number) => void

/** A name server that answers nothing about its host before a test lets it, so that connections to it wait. */
export interface SlowNames {
  /** A host that only this name server knows, and no other test of the process: its addresses would be remembered. */
  readonly host: string
  /** The connections that wait for it. */
  readonly waiting: number
  /** Answers that the host is this machine, from now on at once. */
  release(): void
}

let hosts = 0

/** Takes the place of the system's resolver in this process until the test ends. */
export function slowNames(t: Test): SlowNames {
  const { lookup } = dns
  const host = `slow-${++hosts}.test`
  let waiting = 0
  const lookups: (() => void)[] = []
  let isReleased = false
  const answerSlowly = (asked: string, options: { readonly all?: boolean }, answer: Answer): void => {
    if (asked !== host) return void lookup(asked, options as dns.LookupOneOptions, answer)
    const reply = (): void => {
      if (options.all === true) answer(null, [{ address: '127.0.0.1', family: 4 }])
      else answer(null, '127.0.0.1', 4)
    }
    if (isReleased) reply()
    else lookups.push(reply)
  }
  dns.lookup = answerSlowly as typeof lookup
  // Connections share a lookup, so they are counted where they ask for it.
  const whose = names.for.bind(names)
  names.for = (peer) => (asked, options, answer) => {
    if (asked !== host) return whose(peer)(asked, options, answer)
    waiting++
    whose(peer)(asked, options, (...found) => {
      waiting--
      answer(...found)
    })
  }
  t.teardown(() => {
    dns.lookup = lookup
    Reflect.deleteProperty(names, 'for')
  })
  return {
    host,
    get waiting() {
      return waiting
    },
    release() {
      isReleased = true
      for (const reply of lookups.splice(0)) reply()
    },
  }
}
