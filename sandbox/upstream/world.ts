import type { SandboxProvider } from '../provider.ts'
import type { ContractBook } from './contract-book.ts'
import type { Market } from './market.ts'
import type { OneTimePasswords } from './one-time-passwords.ts'
import type { Users } from './users.ts'

/** Everything the upstream consists of; both of its surfaces, REST and WebSocket, look at the same one. */
export interface World {
  provider: Pick<SandboxProvider, 'isActive'>
  market: Market
  users: Users
  contracts: ContractBook
  oneTimePasswords: OneTimePasswords
}
