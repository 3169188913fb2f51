import * as fc from 'fast-check'
import { EQUAL_SYMBOLS, SYMBOLS } from './market.ts'
import type { Behaviour } from './random-upstream.ts'
import { anyText, readText, sharedText, written } from './request-texts.ts'

/** What a browser does. Numbers of browsers, streams and connections are taken modulo how many there are. */
export type Action =
  /** Some browsers only ever ask for what has one answer: they have nothing to lose. */
  | { readonly do: 'send'; readonly browser: number; readonly text: string; readonly read: string }
  /** Every browser sends the same, as when a page is loaded everywhere. */
  | { readonly do: 'sendAll'; readonly text: string; readonly read: string }
  /** Forgets a stream: its own, or one of its neighbour's. */
  | { readonly do: 'forget'; readonly browser: number; readonly stream: number; readonly isForeign: boolean }
  | { readonly do: 'reconnect' | 'leave' | 'pause' | 'resume'; readonly browser: number }

/** How a connection is lost. */
export type Loss = 'close' | 'reset' | 'half' | 'invalid' | 'huge' | 'silent'

/** What upstream is to do. */
export type Order =
  | { readonly do: 'move'; readonly symbols: readonly string[]; readonly times: number; readonly seconds?: number }
  /** Some connections, each a bit of `which`, learn of some more prices. */
  | { readonly do: 'tell'; readonly which: number; readonly count: number }
  | { readonly do: 'answer'; readonly count: number }
  | { readonly do: 'say'; readonly connection: number; readonly text: string; readonly isBinary: boolean }
  | { readonly do: 'end'; readonly connection: number; readonly stream: number }
  | { readonly do: 'lose'; readonly connection: number; readonly how: Loss }
  | { readonly do: 'loseAll'; readonly how: Loss }
  | { readonly do: 'handshakes'; readonly how: 'open' | 'refuse' | 'hang' | 'slam' }

/** An order, or actions that nobody waits between. */
export type Step = Order | readonly Action[]

/** A session of several browsers. */
export interface Script {
  readonly browsers: number
  readonly steps: readonly Step[]
  /** Of what upstream decides by itself. */
  readonly seed: number
}

/** How large sessions are. */
export interface Size {
  readonly browsers: fc.Arbitrary<number>
  /** The most actions at once. */
  readonly actions: number
  readonly steps: readonly [least: number, most: number]
}

const GARBAGE = [
  '',
  'x',
  '{',
  '[1]',
  '{}',
  'null',
  '{"req_id":123456789}',
  '{"req_id":777,"req_id":778}',
  '{"msg_type":"tick","req_id":"1","tick":{"quote":1}}',
  `{"req_id":${'9'.repeat(400)}}`,
  '{"subscription":{"id":"nobody"},"tick":1}',
]
/**
 * How many prices the histories of a symbol of {@link EQUAL_SYMBOLS} have; none for candles. If a stream began with fewer than a
 * history has, nobody could tell which of several equal prices of a second it ends with.
 */
const COUNTS = [1, undefined, 2, 5, undefined, 100]
const index = fc.nat(999)

/** Requests for histories of a symbol, several prices of a second of which may be equal. */
function equalText(symbol: string, count: number | undefined): fc.Arbitrary<string> {
  const history = `ticks_history "${symbol}" | end "latest" | subscribe 1 | count ${count ?? 1}`
  const candles = ['granularity 60', 'granularity 120'].map((more) => `${history} | style "candles" | ${more}`)
  const ticks = [history, `${history} | style "ticks"`, `${history} | start 1`]
  return fc
    .constantFrom(...(count === undefined ? [...candles, `${history} | style "candles"`] : ticks))
    .map((text) => written(text))
}

function actions(text: fc.Arbitrary<string>, maxLength: number): fc.Arbitrary<Action[]> {
  const told = { text, read: readText }
  const action = fc.oneof(
    { weight: 14, arbitrary: fc.record({ do: fc.constant('send' as const), browser: index, ...told }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('sendAll' as const), ...told }) },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant('forget' as const),
        browser: index,
        stream: index,
        isForeign: fc.boolean(),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ do: fc.constantFrom('reconnect', 'leave', 'pause', 'resume', 'resume'), browser: index }),
    },
  )
  return fc.array(action, { minLength: 1, maxLength, size: 'max' })
}

const moved = (symbols: readonly string[], more: object = {}): fc.Arbitrary<Order> =>
  fc.record({
    do: fc.constant('move' as const),
    symbols: fc.uniqueArray(fc.constantFrom(...symbols), { minLength: 1, maxLength: 4 }),
    times: fc.integer({ min: 1, max: 3 }),
    ...more,
  })
const tell = fc.record({ do: fc.constant('tell' as const), which: fc.nat(255), count: fc.integer({ min: 1, max: 12 }) })
const answer = fc.record({ do: fc.constant('answer' as const), count: fc.integer({ min: 1, max: 4 }) })
const loss = fc.constantFrom<Loss[]>('close', 'reset', 'half', 'invalid', 'huge', 'silent')
const trouble: fc.Arbitrary<Order> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ do: fc.constant('lose' as const), connection: index, how: loss }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('end' as const), connection: index, stream: index }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('handshakes' as const),
      how: fc.constantFrom('open', 'open', 'refuse', 'hang', 'slam'),
    }),
  },
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constant('say' as const),
      connection: index,
      text: fc.constantFrom(...GARBAGE),
      isBinary: fc.boolean(),
    }),
  },
)

/** Sessions with an upstream of this behaviour. */
export function scripts({ clock, losses }: Behaviour, { browsers, actions: most, steps }: Size): fc.Arbitrary<Script> {
  const [minLength, maxLength] = steps
  const script = (...steps: fc.MaybeWeightedArbitrary<Step>[]): fc.Arbitrary<Script> =>
    fc.record({
      browsers,
      steps: fc.array(fc.oneof(...steps), { minLength, maxLength, size: 'max' }),
      seed: fc.nat(),
    })
  if (clock === 'shared') {
    return script({ weight: 3, arbitrary: actions(anyText, most) }, { weight: 2, arbitrary: moved(SYMBOLS) })
  }
  if (losses) {
    const troubled = script(
      { weight: 40, arbitrary: actions(sharedText, most) },
      { weight: 30, arbitrary: moved(SYMBOLS) },
      { weight: 30, arbitrary: tell },
      { weight: 40, arbitrary: answer },
      { weight: 8, arbitrary: trouble },
    )
    // Once at least all connections are lost.
    return fc.tuple(troubled, loss).map(([{ steps, ...script }, how]) => {
      const middle = Math.floor(steps.length / 2)
      return Object.assign(script, { steps: steps.toSpliced(middle, 0, { do: 'loseAll', how }) })
    })
  }
  return fc.nat(COUNTS.length - 1).chain((at) => {
    const symbol = EQUAL_SYMBOLS[at] ?? ''
    return script(
      { weight: 30, arbitrary: actions(equalText(symbol, COUNTS[at]), most) },
      { weight: 19, arbitrary: moved([symbol], { seconds: fc.nat(2), times: fc.integer({ min: 1, max: 5 }) }) },
      // Many prices of one second, or many changes of a candle.
      { weight: 2, arbitrary: moved([symbol], { seconds: fc.nat(1), times: fc.nat(200) }) },
      { weight: 22, arbitrary: tell },
      { weight: 18, arbitrary: answer },
    )
  })
}

/** A text with the symbols of a browser. @param isApart whether no symbol is asked for by both kinds of requests */
export function textFor(browser: number, text: string, isApart: boolean): string {
  const [one, other] = [browser % 2, 2 + (browser % 2)]
  const places = isApart
    ? { T0: one, T1: other, H0: 1 - one, H1: 5 - other, C0: 0, C1: 1 }
    : { T0: browser % 5, T1: (browser + 1) % 5, H0: browser % 5, H1: (browser + 2) % 5, C0: browser % 5, C1: 0 }
  return text.replaceAll(/\$([THC][01])/g, (_, name: keyof typeof places) => SYMBOLS[places[name]] ?? '')
}
