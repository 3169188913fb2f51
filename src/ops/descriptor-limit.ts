import { descriptorLimit } from '../telemetry/descriptors.ts'
import { CONNECTIONS } from '../upstream/rest-clients.ts'

/** One socket to the browser, and one to upstream. */
const PER_RELAY = 2
/** Listeners, Redis, the provider, files of STATIC_DIR, and Node's own descriptors. */
const OF_PROCESS = 64
/** Every pending call has a connection to upstream, and another one to the browser that waits for it. */
const OF_CALLS = 2 * (CONNECTIONS.reads + CONNECTIONS.orders + CONNECTIONS.oneTimeUrls)

/**
 * Returns a warning if the limit of open files is too low for `maxRelays`; undefined if it suffices or is unknown. The
 * soft limit counts, which Node has already raised to the hard limit where it could.
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
