import type { Message } from './socket-status.ts'

/** Operations that change nothing, however often they are sent. Every other operation counts as a command. */
const READS =
  /^(active_symbols|contracts_(for|list)|ticks|ticks_history|trading_times|time|ping|proposal|contract_update_history|proposal_open_contract|portfolio|profit_table|statement|balance|transaction|forget|forget_all|auto_(get|list|list_strategies))$/
const COMMANDS = /^(buy|sell|cancel|contract_update|auto_(start|pause|resume|stop))$/

/** False if the message certainly changes nothing. */
export function isCommand(message: Message): boolean {
  const keys = Object.keys(message)
  return keys.some((key) => COMMANDS.test(key)) || !keys.some((key) => READS.test(key))
}
