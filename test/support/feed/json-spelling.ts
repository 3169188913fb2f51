import * as fc from 'fast-check'

/** A JSON value as JSON.parse returns it. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** Strings that every parser reads alike: no lone surrogate, no U+0000. */
const text = fc.string({ unit: 'binary', maxLength: 8 }).map((each) => each.toWellFormed().replaceAll('\0', ''))
const key = fc.oneof(
  text,
  fc.constantFrom('__proto__', 'echo_req', 'req_id', 'id', 'ticks', 'subscription', 'ÿ', '"\\'),
)
const scalar = fc.oneof(
  fc.constantFrom<Json>(null, true, false, 0, 1),
  text,
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => (value === 0 ? 0 : value)),
)

const tree = fc.letrec<{ value: Json; object: { [key: string]: Json } }>((tie) => ({
  object: fc
    .uniqueArray(fc.tuple(key, tie('value')), { selector: ([name]) => name, maxLength: 4 })
    .map((entries) => Object.fromEntries(entries)),
  value: fc.oneof({ maxDepth: 4 }, scalar, fc.array(tie('value'), { maxLength: 4 }), tie('object')),
}))

/** Any JSON value. */
export const jsonValue: fc.Arbitrary<Json> = tree.value

/** Any JSON object. */
export const jsonObject: fc.Arbitrary<{ [key: string]: Json }> = tree.object

/** Chooses at random among so many. */
type Choose = (count: number) => number

/** A random way to write a JSON value down: order of keys, white space, escapes. Numbers stay as JavaScript prints them. */
export const spelling: fc.Arbitrary<(value: Json) => string> = fc
  .infiniteStream(fc.nat(1000))
  .map((stream) => (value: Json) => spelled(value, (count) => Number(stream.next().value) % count))

function spelled(value: Json, choose: Choose): string {
  const space = (): string => ['', '', '', '', ' ', '\n', '\t', ' \r\n'][choose(8)] ?? ''
  const around = (token: string): string => `${space()}${token}${space()}`
  if (typeof value === 'string') return around(spelledString(value, choose))
  if (value === null || typeof value !== 'object') return around(JSON.stringify(value))
  if (Array.isArray(value)) return around(`[${value.map((each: Json) => spelled(each, choose)).join(',') || space()}]`)
  const members = shuffled(Object.entries(value), choose).map(
    ([name, each]) => `${around(spelledString(name, choose))}:${spelled(each, choose)}`,
  )
  return around(`{${members.join(',') || space()}}`)
}

function spelledString(value: string, choose: Choose): string {
  const escaped = Array.from({ length: value.length }, (_none, at) => {
    const code = value.charCodeAt(at).toString(16).padStart(4, '0')
    return choose(4) === 0
      ? `\\u${choose(2) === 0 ? code : code.toUpperCase()}`
      : JSON.stringify(value[at]).slice(1, -1)
  })
  // Both halves of a pair must be written in the same way.
  return value.isWellFormed() && /[\ud800-\udfff]/.test(value) ? JSON.stringify(value) : `"${escaped.join('')}"`
}

function shuffled<Item>(items: readonly Item[], choose: Choose): Item[] {
  const left = [...items]
  return items.flatMap(() => left.splice(choose(left.length), 1))
}
