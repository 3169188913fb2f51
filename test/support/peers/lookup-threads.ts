import dns from 'node:dns'
import type { Test } from 'tap'

type Answer = (error: Error | null, address: unknown, family?: number) => void

/** Only names with this ending are looked up here. */
const ENDING = '.test'

/** The threads of this process that look up names, and name servers which may be silent about some of them. */
export interface LookupThreads {
  /** The names that no name server answers about. */
  readonly silent: Set<string>
  /** The addresses of names that are not this machine. */
  readonly addresses: Map<string, readonly dns.LookupAddress[]>
  /** The lookups that were begun so far, and did not fail for want of a thread. */
  readonly begun: string[]
  /** How many lookups of a name no name server has answered yet. */
  unanswered(name: string): number
  /** Answers, or fails, the oldest lookup of a name that no name server answers about. */
  answer(name: string, error?: string): void
}

/**
 * Takes the place of the system's resolver for names that end with `.test` until the test ends. Like in libuv, only so many
 * lookups run at once, and those of silent names go on, whoever still waits for them.
 */
export function lookupThreads(t: Test, places: number): LookupThreads {
  const { lookup } = dns
  const silent = new Set<string>()
  const addresses = new Map<string, readonly dns.LookupAddress[]>()
  const begun: string[] = []
  const queue: (() => void)[] = []
  const held: { readonly name: string; readonly end: (error?: string) => void }[] = []
  let free = places
  const begin = (name: string, { all }: { readonly all?: boolean }, answer: Answer): void => {
    free--
    begun.push(name)
    const end = (error?: string): void => {
      free++
      queue.shift()?.()
      const found = addresses.get(name) ?? [{ address: '127.0.0.1', family: 4 }]
      const failure = Object.assign(new Error(`getaddrinfo ${error} ${name}`), { code: error, syscall: 'getaddrinfo' })
      if (error !== undefined) answer(failure, [])
      else if (all === true) answer(null, [...found])
      else answer(null, found[0]?.address, found[0]?.family)
    }
    if (silent.has(name)) held.push({ name, end })
    else setImmediate(end)
  }
  dns.lookup = ((name: string, options: dns.LookupOptions, answer: Answer) => {
    if (!name.endsWith(ENDING)) return lookup(name, options as dns.LookupOneOptions, answer)
    const start = (): void => begin(name, options as { readonly all?: boolean }, answer)
    if (free > 0) start()
    else queue.push(start)
  }) as typeof lookup
  t.teardown(() => {
    dns.lookup = lookup
    for (const { end } of held) end('EAI_AGAIN')
  })
  return {
    silent,
    addresses,
    begun,
    unanswered: (name) => held.filter((each) => each.name === name).length,
    answer(name, error) {
      const at = held.findIndex((each) => each.name === name)
      held.splice(at, 1)[0]?.end(error)
    },
  }
}
