/** A slip that changes nothing that anybody could see. */
export interface Equivalent {
  readonly file: string
  /** The line in which it is. */
  readonly line: string
  readonly replacement: string
  readonly why: string
}

/** Several slips of a file. */
export function inFile(
  file: string,
  slips: readonly (readonly [line: string, replacement: string, why: string])[],
): Equivalent[] {
  return slips.map(([line, replacement, why]) => ({ file, line, replacement, why }))
}
