/** A token (RFC 9110 §5.6.2), which is also what a header's name must be. */
const NAME = /^[!#$%&'*+.^_`|~\w-]+$/

/**
 * Reads `name=value,name=value`, whose values may be percent-encoded, as OpenTelemetry defines it for headers and resource
 * attributes. Of the same name the last value counts. Undefined if the text is no such list.
 */
export function keyValues(text: string): Readonly<Record<string, string>> | undefined {
  const found: Record<string, string> = {}
  for (const part of text.split(',')) {
    if (part.trim() === '') continue
    const at = part.indexOf('=')
    const name = part.slice(0, Math.max(0, at)).trim()
    const value = decoded(part.slice(at + 1).trim())
    if (!NAME.test(name) || value === undefined) return undefined
    found[name] = value
  }
  return found
}

/** Decodes percent-encoding. Undefined unless each escape stands for UTF-8: URLSearchParams would take any other literally, or replace it. */
export function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
