import { readFileSync } from 'node:fs'
import { CONNECTIONS } from '../upstream/connections.ts'

/** A socket to the browser, and one to upstream. */
const PER_RELAY = 2
/** Listeners, Redis, the provider, files of STATIC_DIR, and what Node has for itself. */
const OF_PROCESS = 64
/** Every call under way has a connection to upstream, and another to the browser that waits for it. */
const OF_CALLS = 2 * (CONNECTIONS.reads + CONNECTIONS.orders + CONNECTIONS.oneTimeUrls)

/**
 * What an operator should know of the limit of open files; undefined when it is enough, or not known. It is the soft
 * limit, which Node has raised to the hard one by now where it could.
 */
export function descriptorWarning(maxRelays: number): string | undefined {
  const limit = descriptorLimit()
  const needed = PER_RELAY * maxRelays + OF_CALLS + OF_PROCESS
  if (limit === undefined || limit >= needed) return undefined
  return (
    `This process may have ${limit} files open, and MAX_RELAYS=${maxRelays} takes up to ${needed}: ` +
    'raise the limit (LimitNOFILE, ulimit -Hn), or lower MAX_RELAYS'
  )
}

/** Undefined where there is none, or no /proc to read it from. */
function descriptorLimit(): number | undefined {
  try {
    const limit = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
    return limit === undefined ? undefined : Number(limit)
  } catch {
    return undefined
  }
}
