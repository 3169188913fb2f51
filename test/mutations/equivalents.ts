import type { Mutant } from './run.ts'

/** A slip that changes nothing that anybody could see. */
interface Equivalent {
  readonly file: string
  /** The line in which it is. */
  readonly line: string
  readonly replacement: string
  readonly why: string
}

export const EQUIVALENTS: readonly Equivalent[] = [
  {
    file: 'src/time/window.ts',
    line: 'if (now >= this.#endsAt) {',
    replacement: 'now > this.#endsAt',
    why: 'A clock of fractions of a millisecond never shows this very moment.',
  },
]

/** Whether it is known that a slip changes nothing. */
export function isEquivalent(file: string, line: string, { replacement }: Mutant): boolean {
  return EQUIVALENTS.some((each) => each.file === file && each.line === line && each.replacement === replacement)
}
