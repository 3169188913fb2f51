import type { Equivalent } from './equivalent.ts'
import { OF_CALLS } from './equivalents-of-calls.ts'
import { OF_LOGINS } from './equivalents-of-logins.ts'
import { OF_SESSIONS } from './equivalents-of-sessions.ts'
import { OF_SOCKETS } from './equivalents-of-sockets.ts'
import { OF_CONTROLS } from './equivalents-of-controls.ts'
import { OF_STORE } from './equivalents-of-store.ts'
import type { Mutant } from './run.ts'

export const EQUIVALENTS: readonly Equivalent[] = [
  {
    file: 'src/store/shared-state.ts',
    line: 'if (this.#form.isAtOnce) {',
    replacement: 'true',
    why: 'Where a change does not count at once, nobody is shown the current state. That change() tells no news is noticed.',
  },
  {
    file: 'src/store/shared-state.ts',
    line: "const written = await document.write(this.#version ?? '', this.#form.format(this.#known), this.#form.ttlMs)",
    replacement: '"Stryker was here!"',
    why: 'It was read before.',
  },
  {
    file: 'src/store/shared-state.ts',
    line: "const version = this.#version ?? ''",
    replacement: '"Stryker was here!"',
    why: 'It was read before.',
  },
  ...OF_CALLS,
  ...OF_LOGINS,
  ...OF_SESSIONS,
  ...OF_SOCKETS,
  ...OF_CONTROLS,
  ...OF_STORE,
  {
    file: 'src/store/pending-writes.ts',
    line: 'clearTimeout(this.#timer)',
    replacement: ';',
    why: 'In close() the timer finds nothing to write; that of a repetition is noticed.',
  },
  {
    file: 'src/store/pending-writes.ts',
    line: 'if (key === undefined && this.#writes.size > 0 && store.unavailableSince() === undefined) void this.#repeat()',
    replacement: 'true',
    why: 'Without writes there is nothing to repeat; that any key would do is noticed.',
  },
  {
    file: 'src/store/pending-writes.ts',
    line: 'if (key === undefined && this.#writes.size > 0 && store.unavailableSince() === undefined) void this.#repeat()',
    replacement: 'this.#writes.size >= 0',
    why: 'Without writes there is nothing to repeat.',
  },
  {
    file: 'client/src/core/api/api.ts',
    line: "else if (error.code || !response?.headers.has('x-request-id')) {",
    replacement: 'response.headers',
    why: 'An error of a call that is no GET has a code, an outcome or a response.',
  },
  {
    file: 'client/src/core/api/once.ts',
    line: 'if (isMade && !remember) return makeOnce(order, isMade)',
    replacement: 'false',
    why: 'The other entry does the same; it is only loaded needlessly.',
  },
  {
    file: 'src/limits/minute-limit.ts',
    line: 'this.#refused.set(key, true, { ttl: waitMs })',
    replacement: 'false',
    why: 'Only the time to live is read.',
  },
  {
    file: 'src/limits/minute-limit.ts',
    line: 'const waitMs = leftMs > 0 && leftMs <= WINDOW_MS ? leftMs : WINDOW_MS',
    replacement: 'leftMs < WINDOW_MS',
    why: 'Both are the same where it is equal.',
  },
  {
    file: 'src/limits/networks.ts',
    line: 'return [...front, ...zeros, ...back].slice(0, 4)',
    replacement: '[...front, ...zeros, ...back]',
    why: 'Its callers take the first four.',
  },
  {
    file: 'src/limits/networks.ts',
    line: 'const mapped = /^::ffff:(\\d+\\.\\d+\\.\\d+\\.\\d+)$/.exec(canonical)?.[1]',
    replacement: '/^::ffff:(\\d+\\.\\d+\\.\\d+\\.\\d+)/',
    why: 'Nothing follows a dotted quad.',
  },
  {
    file: 'src/limits/networks.ts',
    line: 'const mapped = /^::ffff:(\\d+\\.\\d+\\.\\d+\\.\\d+)$/.exec(canonical)?.[1]',
    replacement: '/::ffff:(\\d+\\.\\d+\\.\\d+\\.\\d+)$/',
    why: 'No other canonical address has a dotted quad after ffff.',
  },
  {
    file: 'src/limits/networks.ts',
    line: "const [front = [], back = []] = address.split('::').map((half) => half.match(/[^:]+/g) ?? [])",
    replacement: '["Stryker was here"]',
    why: 'A text has a first part.',
  },
  {
    file: 'src/limits/networks.ts',
    line: "const [first = '', second = '', third = '', fourth = ''] = firstGroups(canonical)",
    replacement: '"Stryker was here!"',
    why: 'An address has eight groups.',
  },
  {
    file: 'src/limits/networks.ts',
    line: "const [bare = ''] = address.split('%', 1)",
    replacement: '"Stryker was here!"',
    why: 'A text has a first part.',
  },
  {
    file: 'src/time/sliding-count.ts',
    line: 'return this.#slices.splice(0, kept < 0 ? this.#slices.length : kept)',
    replacement: 'kept <= 0',
    why: 'It has returned where it is 0.',
  },
  {
    file: 'src/time/sliding-count.ts',
    line: 'if (kept === 0) return NONE',
    replacement: 'false',
    why: 'It takes nothing, into a new array.',
  },
  {
    file: 'client/src/core/api/call.ts',
    line: "const { timeoutMs = TIMEOUT_MS, headers, signal, method = 'GET', ...rest } = init",
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
    line: "return crypto.getRandomValues(new Uint32Array(4)).join('-')",
    replacement: '""',
    why: 'Keys only have to differ.',
  },
]

/** Whether it is known that a slip changes nothing. */
export function isEquivalent(file: string, line: string, { replacement }: Mutant): boolean {
  return EQUIVALENTS.some((each) => each.file === file && each.line === line && each.replacement === replacement)
}
