import type { Message } from './socket-status.ts'

/** Operations that change nothing, however often they are sent. Every other operation counts as a command. */
const READS =
  /^(active_symbols|contracts_(for|list)|ticks(_history)?|trading_times|time|ping|proposal(_open_contract)?|contract_update_history|portfolio|profit_table|statement|balance|transaction|forget(_all)?|auto_(get|list(_strategies)?))$/
const COMMANDS = /^(buy|sell|cancel|contract_update|auto_(start|pause|resume|stop))$/

/** False if the message certainly changes nothing. */
export function isCommand(message: Message): boolean {
  const keys = Object.keys(message)
  return keys.some((key) => COMMANDS.test(key)) || !keys.some((key) => READS.test(key))
}
