/** The operations of the WebSocket surface (docs/upstream.md, Messages). */
export const OPERATIONS: ReadonlySet<string> = new Set(
  `active_symbols contracts_for contracts_list ticks ticks_history trading_times time ping
  proposal buy sell cancel contract_update contract_update_history proposal_open_contract portfolio profit_table statement
  balance transaction forget forget_all
  auto_get auto_list auto_list_strategies auto_start auto_pause auto_resume auto_stop`.split(/\s+/),
)

const TERMS = (
  'amount barrier barrier2 basis cancellation contract_type currency date_expiry duration duration_unit growth_rate ' +
  'limit_order multiplier payout_per_point selected_tick underlying_symbol'
).split(' ')
const PERIOD = ['date_from', 'date_to', 'description', 'limit', 'offset']

/**
 * The operations that change nothing, or stop an automation, with the other members that each is known to have
 * (docs/upstream.md, Messages). They pass while orders are paused, and the feed shares some of them. A request with any other
 * member neither passes nor is shared.
 */
export const READS: Readonly<Record<string, readonly string[]>> = {
  active_symbols: ['contract_type'],
  auto_get: [],
  auto_list: [],
  auto_list_strategies: [],
  auto_pause: [],
  auto_stop: [],
  balance: ['subscribe'],
  contract_update_history: ['contract_id', 'limit'],
  contracts_for: ['currency'],
  contracts_list: ['detail'],
  forget: [],
  forget_all: [],
  ping: [],
  portfolio: ['contract_type'],
  profit_table: ['contract_type', 'sort', ...PERIOD],
  proposal: ['subscribe', ...TERMS],
  proposal_open_contract: ['contract_id', 'subscribe'],
  statement: ['action_type', ...PERIOD],
  ticks: ['subscribe'],
  ticks_history: ['adjust_start_time', 'count', 'end', 'granularity', 'start', 'style', 'subscribe'],
  time: [],
  trading_times: [],
  transaction: ['subscribe'],
}

/** All members that a request for each operation may have. */
export function membersOf(
  operations: Readonly<Record<string, readonly string[]>>,
): ReadonlyMap<string, ReadonlySet<string>> {
  const entries = Object.entries(operations)
  return new Map(entries.map(([name, others]) => [name, new Set([name, ...others, 'req_id', 'passthrough'])]))
}

/** How many bytes of a message are searched. Clients put the operation first. */
const MAX_SEARCHED_BYTES = 512

/** Nearly all messages begin like this. */
const FIRST_KEY = /^\{\s*"(\w+)"\s*:/
const FIRST_KEY_BYTES = 48

/**
 * A string with, if it is a key, its colon; or a bracket. An unterminated string matches too: otherwise the pattern would fail
 * and try again from every quote inside it.
 */
const TOKEN = /"((?:[^"\\]|\\.?)*)(?:"(\s*:)?|$)|[{}[\]]/gs

/** The operation of a browser's message: its first top-level key that names one, else `other`. Never throws. */
export function operationOf(message: Buffer): string {
  const first = FIRST_KEY.exec(message.toString('latin1', 0, FIRST_KEY_BYTES))?.[1]
  if (first !== undefined && OPERATIONS.has(first)) return first
  let depth = 0
  for (const [token, text = '', colon] of message.toString('latin1', 0, MAX_SEARCHED_BYTES).matchAll(TOKEN)) {
    if (token === '{' || token === '[') depth++
    else if (token === '}' || token === ']') depth--
    else if (depth === 1 && colon !== undefined && OPERATIONS.has(text)) return text
  }
  return 'other'
}
