/**
 * Whether a request has a header more than once. Node joins some of these into one value, and keeps only the first of others.
 * @param rawHeaders names and values as they came
 * @param lowerCaseName of the header
 */
export function isRepeated(rawHeaders: readonly string[], lowerCaseName: string): boolean {
  let count = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]
    if (name?.length === lowerCaseName.length && name.toLowerCase() === lowerCaseName) count++
  }
  return count > 1
}
