import type { SandboxProvider } from '../provider.ts'
import type { Sharing } from '../sharing.ts'
import type { ContractBook } from './contract-book.ts'
import type { ContractIds } from './contract-ids.ts'
import type { SocketLimits } from './limits.ts'
import type { Market } from './market.ts'
import type { OneTimePasswords } from './one-time-passwords.ts'
import type { Users } from './users.ts'
import type { UpstreamWatch } from './watch.ts'

/** The state of the upstream, which its REST API and its WebSocket API share. */
export interface World {
  provider: Pick<SandboxProvider, 'isActive'>
  market: Market
  users: Users
  contracts: ContractBook
  ids: ContractIds
  oneTimePasswords: OneTimePasswords
  limits: SocketLimits
  /** Undefined where the sandbox runs without a server of its own. */
  sharing: (() => Promise<Sharing>) | undefined
  watch: UpstreamWatch | undefined
  /** Whether one-time URLs have the host that a client has called, as behind a proxy. */
  followsHost: boolean
}
