import { BALANCERS } from './balancers.ts'
import { BROWSERS } from './browsers.ts'
import { HTTP3 } from './http3.ts'
import { MONITORING } from './monitoring.ts'
import { NODES } from './node.ts'
import { PROVIDERS } from './providers.ts'
import { REDIS } from './redis.ts'
import type { Kind } from './row.ts'

/** All tables of docs/compatibility.md, by their name on the command line. */
export const KINDS: Readonly<Record<string, Kind>> = {
  redis: REDIS,
  balancers: BALANCERS,
  http3: HTTP3,
  providers: PROVIDERS,
  browsers: BROWSERS,
  node: NODES,
  monitoring: MONITORING,
}
