import dns from 'node:dns'
import type { Test } from 'tap'

/** A host that only {@link slowNames} knows. */
export const SLOW_HOST = 'slow.test'

type Answer = (error: Error | null, address: unknown, family?: number) => void

/** A name server that answers nothing about {@link SLOW_HOST} before a test lets it, so that connections to it wait. */
export interface SlowNames {
  /** The connections that wait for it. */
  readonly waiting: number
  /** Answers that the host is this machine, from now on at once. */
  release(): void
}

/** Takes the place of the system's resolver in this process until the test ends. */
export function slowNames(t: Test): SlowNames {
  const { lookup } = dns
  const waiting: (() => void)[] = []
  let isReleased = false
  const answerSlowly = (host: string, options: { readonly all?: boolean }, answer: Answer): void => {
    if (host !== SLOW_HOST) return void lookup(host, options as dns.LookupOneOptions, answer)
    const reply = (): void => {
      if (options.all === true) answer(null, [{ address: '127.0.0.1', family: 4 }])
      else answer(null, '127.0.0.1', 4)
    }
    if (isReleased) reply()
    else waiting.push(reply)
  }
  dns.lookup = answerSlowly as typeof lookup
  t.teardown(() => (dns.lookup = lookup))
  return {
    get waiting() {
      return waiting.length
    },
    release() {
      isReleased = true
      for (const reply of waiting.splice(0)) reply()
    },
  }
}
