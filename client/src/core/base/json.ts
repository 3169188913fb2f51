/** Every text and every number of a JSON text, whole. */
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?[\d.]+(?:[eE][-+]?\d+)?/g

/**
 * The value of a JSON text. An integer beyond 2^53 is a text of its digits, because the number would be that of a neighbour.
 * @throws SyntaxError if the text is no JSON
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text)
  // Few texts have a number of this length.
  if (!/[1-9]\d{15}/.test(text)) return value
  return JSON.parse(text.replace(TOKENS, (token) => (isUnsafe(token) ? `"${token}"` : token)))
}

/**
 * The JSON text of a value. A text of digits is a number again in the members which the trading service describes as ids that are
 * numbers. Undefined for what is no JSON, as with `JSON.stringify`.
 */
export function writeJson(value: unknown): string {
  // Within a text, quotes are escaped: this finds members alone.
  return (JSON.stringify(value) as string | undefined)?.replace(
    /("(?:agent_id|cancel|contract_id|sell)":)"(-?(?:0|[1-9]\d*))"/g,
    '$1$2',
  ) as string
}

function isUnsafe(token: string): boolean {
  return /^-?\d+$/.test(token) && !Number.isSafeInteger(Number(token))
}

/** Makes `json()` of a response keep ids beyond 2^53. */
export function withIds(response: Response): Response {
  const clone = response.clone.bind(response)
  return Object.assign(response, {
    json: async () => parseJson(await response.text()),
    clone: () => withIds(clone()),
  })
}
