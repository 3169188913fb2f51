/** The operations of the WebSocket surface (docs/upstream.md, Messages). */
export const OPERATIONS: ReadonlySet<string> = new Set(
  `active_symbols contracts_for contracts_list ticks ticks_history trading_times time ping
  proposal buy sell cancel contract_update contract_update_history proposal_open_contract portfolio profit_table statement
  balance transaction forget forget_all
  auto_get auto_list auto_list_strategies auto_start auto_pause auto_resume auto_stop`.split(/\s+/),
)

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
