/**
 * Returns the value that a JSON pointer names in a document, undefined if there is none (RFC 6901).
 * @param pointer already checked against the syntax
 */
export function valueAt(document: unknown, pointer: string): unknown {
  let value = document
  for (const token of pointer.split('/').slice(1)) {
    const key = token.replaceAll('~1', '/').replaceAll('~0', '~')
    // An array has properties that are no elements, such as its length.
    if (!(value instanceof Object) || !Object.hasOwn(value, key) || (Array.isArray(value) && !isIndex(key))) {
      return undefined
    }
    value = (value as Record<string, unknown>)[key]
  }
  return value
}

/** RFC 6901 §4. */
function isIndex(key: string): boolean {
  return /^(0|[1-9]\d*)$/.test(key)
}
