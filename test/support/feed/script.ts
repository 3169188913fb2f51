import * as fc from 'fast-check'
import { type Placeholder, requestText } from './request-texts.ts'

/** What happens to one member, or to the market. Numbers of members and streams are taken modulo how many there are. */
export type Action =
  | { readonly do: 'send'; readonly member: number; readonly text: string }
  /** Every member sends the same, as when a page is loaded everywhere. */
  | { readonly do: 'sendAll'; readonly text: string }
  /** Forgets a stream that a member has or had: its own, or one of its neighbour's. */
  | { readonly do: 'forget'; readonly member: number; readonly stream: number; readonly isForeign: boolean }
  | { readonly do: 'reconnect' | 'pause' | 'resume'; readonly member: number }

/** A move of prices, or actions that nobody waits between. */
export type Step = { readonly symbols: readonly string[]; readonly times: number } | readonly Action[]

/** A session of several members. */
export interface Script {
  readonly members: number
  readonly steps: readonly Step[]
}

const SYMBOLS = ['R_10', 'R_25', 'R_50', 'R_75'] as const
/** All symbols that a script subscribes to. */
export const ALL_SYMBOLS = [...SYMBOLS, 'R_100', 'O_1'] as const

const member = fc.nat(49)
const send = fc.record({ do: fc.constant('send' as const), member, text: requestText })
const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 14, arbitrary: send },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('sendAll' as const), text: requestText }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('forget' as const), member, stream: fc.nat(9), isForeign: fc.boolean() }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('reconnect', 'pause', 'resume'), member }) },
)
const moves = fc.record({
  symbols: fc.uniqueArray(fc.constantFrom(...ALL_SYMBOLS), { minLength: 1, maxLength: 4 }),
  times: fc.integer({ min: 1, max: 3 }),
})

/** Sessions of 1 to 50 members. */
export const script: fc.Arbitrary<Script> = fc.record({
  members: fc.oneof(
    { weight: 8, arbitrary: fc.integer({ min: 1, max: 4 }) },
    { weight: 3, arbitrary: fc.integer({ min: 5, max: 12 }) },
    { weight: 1, arbitrary: fc.integer({ min: 13, max: 50 }) },
  ),
  steps: fc.array(
    fc.oneof(
      { weight: 3, arbitrary: fc.array(action, { minLength: 1, maxLength: 6 }) },
      { weight: 2, arbitrary: moves },
    ),
    { minLength: 2, maxLength: 14 },
  ),
})

/** A text with the symbols of a member. */
export function textFor(member: number, text: string): string {
  const [first, second] = member % 2 === 0 ? [0, 2] : [1, 3]
  const symbols: Record<Placeholder, string | undefined> = {
    $T0: SYMBOLS[first ?? 0],
    $T1: SYMBOLS[second ?? 0],
    $H0: SYMBOLS[1 - (first ?? 0)],
    $H1: SYMBOLS[5 - (second ?? 0)],
    $C0: 'R_10',
    $C1: 'R_25',
  }
  return text.replaceAll(/\$[THC][01]/g, (name) => symbols[name as Placeholder] ?? '')
}
