/**
 * Parses a text that is a JSON object. Undefined for any other text. The error is dropped because it quotes the text, which may
 * hold a token.
 */
export function parsedObject(text: string): Record<string, unknown> | undefined {
  // Other JSON values need not be parsed.
  if (!/^[ \t\r\n]*\{/.test(text)) return undefined
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return undefined
  }
}
