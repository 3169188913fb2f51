/** The operations of the WebSocket surface (docs/upstream.md, Messages), for the metrics. */
const OPERATIONS: ReadonlySet<string> = new Set(
  `active_symbols contracts_for contracts_list ticks ticks_history trading_times time ping
  proposal buy sell cancel contract_update contract_update_history proposal_open_contract portfolio profit_table statement
  balance transaction forget forget_all
  auto_get auto_list auto_list_strategies auto_start auto_pause auto_resume auto_stop`.split(/\s+/),
)

/** Looked at no further than this: the operation stands at the front of what clients send. */
const MAX_LOOKED_AT = 512

/** What nearly all of them begin with. */
const FIRST_KEY = /^\{\s*"(\w+)"\s*:/
const FIRST_KEY_BYTES = 48

/**
 * A string, and whether it is a key; or a bracket. Whatever else there is lies in between. A string that does not end is
 * one too: a pattern that could fail here would try again from every quote in it.
 */
const TOKEN = /"((?:[^"\\]|\\.?)*)(?:"(\s*:)?|$)|[{}[\]]/gs

/** The operation of a browser's message: its first own key that names one, else `other`. Parses nothing, never throws. */
export function operationOf(message: Buffer): string {
  const first = FIRST_KEY.exec(message.toString('latin1', 0, FIRST_KEY_BYTES))?.[1]
  if (first !== undefined && OPERATIONS.has(first)) return first
  let depth = 0
  for (const [token, text = '', colon] of message.toString('latin1', 0, MAX_LOOKED_AT).matchAll(TOKEN)) {
    if (token === '{' || token === '[') depth++
    else if (token === '}' || token === ']') depth--
    else if (depth === 1 && colon !== undefined && OPERATIONS.has(text)) return text
  }
  return 'other'
}
