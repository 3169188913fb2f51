/** The operations of the WebSocket surface (interface 4.4), for the metrics. */
const OPERATIONS: ReadonlySet<string> = new Set(
  `active_symbols contracts_for contracts_list ticks ticks_history trading_times time ping
  proposal buy sell cancel contract_update contract_update_history proposal_open_contract portfolio profit_table statement
  balance transaction forget forget_all
  auto_get auto_list auto_list_strategies auto_start auto_pause auto_resume auto_stop`.split(/\s+/),
)

/** Looked at no further than this: the operation stands at the front of what clients send. */
const MAX_LOOKED_AT = 512

/** The operation of a browser's message: its first key that names one, else `other`. Parses nothing, never throws. */
export function operationOf(message: Buffer): string {
  const start = message.toString('latin1', 0, MAX_LOOKED_AT)
  for (const [, key = ''] of start.matchAll(/"([a-z_]{3,30})"\s*:/g)) {
    if (OPERATIONS.has(key)) return key
  }
  return 'other'
}
