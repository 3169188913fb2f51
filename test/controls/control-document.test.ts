import { test } from 'tap'
import {
  isInForce,
  merged,
  NOTICE,
  ORDERS,
  ordersOf,
  parseControls,
  subjectOf,
  textOf,
  tidied,
  versionOf,
  type Control,
  type ControlDocument,
} from '../../src/controls/control-document.ts'
import { DAY, PAUSE } from '../support/controls/shared-store.ts'

const NOW = 1_000 * DAY

const control = (version: number, more: Partial<Control> = {}): Control => ({ version, at: NOW, value: PAUSE, ...more })
const lifted = (version: number, at = NOW): Control => ({ version, at, value: null })
const documentOf = (controls: Record<string, Control>): ControlDocument => new Map(Object.entries(controls))
const shown = (document: ControlDocument): unknown => Object.fromEntries(document)

/** What two instances make of their documents, which must not depend on which of them reads the other's. */
function bothWays(one: ControlDocument, other: ControlDocument): unknown[] {
  return [shown(merged(one, other, NOW)), shown(merged(other, one, NOW))]
}

await test('controls have the names by which version 0.3 knows them', (t) => {
  t.same([ORDERS, NOTICE, ordersOf('CR1')], ['orders', 'notice', 'orders of CR1'])
  t.end()
})

await test('the name of a subject’s pause tells the subject, and other names tell none', (t) => {
  t.equal(subjectOf(ordersOf('CR1')), 'CR1')
  for (const name of ['orders', 'notice', 'CR1', 'the orders of CR1']) t.equal(subjectOf(name), undefined, name)
  t.end()
})

await test('the version of a document is the highest of its controls', (t) => {
  t.equal(versionOf(new Map()), 0)
  t.equal(versionOf(documentOf({ a: control(2), b: control(7), c: lifted(5) })), 7)
  t.end()
})

await test('a control is in force until it is lifted or its time has come', (t) => {
  t.equal(isInForce(control(1), NOW), true)
  t.equal(isInForce(lifted(1), NOW), false)
  t.equal(isInForce(control(1, { value: { closing: true, until: NOW + 1 } }), NOW), true)
  t.equal(isInForce(control(1, { value: { closing: true, until: NOW } }), NOW), false)
  t.end()
})

await test('of two documents each control counts in its higher version, whoever reads', (t) => {
  const one = documentOf({ a: control(1), b: control(9), own: control(3) })
  const other = documentOf({ a: lifted(5), b: lifted(4), theirs: control(2) })
  const expected = { a: lifted(5), b: control(9), own: control(3), theirs: control(2) }
  t.strictSame(bothWays(one, other), [expected, expected])
  t.end()
})

await test('of two controls with the same version the later counts, and of the same moment always the same one', (t) => {
  for (const [lower, higher] of [
    [control(5, { at: NOW - 1 }), lifted(5, NOW)],
    [lifted(5, NOW - 1), control(5, { at: NOW })],
    [lifted(5), control(5)],
    [control(5, { value: { closing: false } }), control(5, { value: { closing: true } })],
  ] as const) {
    t.strictSame(bothWays(documentOf({ a: lower }), documentOf({ a: higher })), [{ a: higher }, { a: higher }])
  }
  t.end()
})

await test('what is below the floor of the other document and missing there has been lifted, and nothing else has', (t) => {
  const floor = lifted(5)
  const one = documentOf({ below: control(4), at: control(5), above: control(6), known: control(3) })
  const other = documentOf({ floor, known: control(2) })
  const expected = { at: control(5), above: control(6), known: control(3), floor }
  t.strictSame(bothWays(one, other), [expected, expected])
  t.end()
})

await test('a document with nothing to forget stays the same', (t) => {
  const old = { closing: true, until: NOW - 30 * DAY }
  const document = documentOf({
    a: control(1, { at: 0 }),
    b: lifted(2, NOW - 30 * DAY),
    c: control(3, { value: old }),
    d: lifted(4, 0),
    floor: lifted(0, 0),
  })
  t.equal(tidied(document, NOW), document, 'the last of them has the highest version')
  t.end()
})

await test('what was lifted or has ended more than thirty days ago is forgotten, and the floor has the highest version of it', (t) => {
  const over = { closing: true, until: NOW - 30 * DAY - 1 }
  const kept = { closing: true, until: NOW - 30 * DAY + 1 }
  const left = { kept: control(1, { at: 0, value: kept }), latest: lifted(9, 0) }
  const tidy = tidied(documentOf({ ended: control(3, { value: over }), lifted: lifted(2, 0), ...left }), NOW)
  t.strictSame(shown(tidy), { ...left, floor: lifted(3) })
  t.end()
})

await test('a floor only rises', (t) => {
  const latest = control(9)
  for (const [before, dropped, after] of [
    [lifted(5, 7), lifted(3, 0), lifted(5, 7)],
    [lifted(3, 7), lifted(5, 0), lifted(5, 0)],
    [lifted(5, 1), lifted(5, 2), lifted(5, 2)],
  ] as const) {
    t.strictSame(shown(tidied(documentOf({ floor: before, dropped, latest }), NOW)), { floor: after, latest })
  }
  t.equal(tidied(documentOf({ floor: lifted(1, 0), latest }), NOW).get('floor')?.version, 1, 'it is not forgotten')
  t.end()
})

await test('of the controls that have ended the latest thousand are kept, and all that are in force', (t) => {
  const names = Array.from({ length: 1003 }, (_, at) => `orders of ${at}`)
  const document = new Map<string, Control>(names.map((name, at) => [name, lifted(at + 2)]))
  document.set('orders', control(1, { at: 0 }))
  const tidy = tidied(document, NOW)
  t.equal(tidy.size, 1002)
  t.strictSame(
    ['orders', 'floor', names[2], names[3]].map((name = '') => tidy.get(name)),
    [control(1, { at: 0 }), lifted(4), undefined, lifted(5)],
  )
  t.equal(document.size, 1004, 'the document itself is not changed')
  const thousand = new Map([...document].slice(3))
  t.equal(tidied(thousand, NOW), thousand)
  t.end()
})

await test('of controls with the same version all instances forget the same one, by its name', (t) => {
  const entries = Array.from({ length: 1001 }, (_, at) => [`orders of ${at + 1000}`, lifted(7)] as const)
  for (const document of [new Map(entries), new Map(entries.toReversed())]) {
    const tidy = tidied(document, NOW)
    t.strictSame(
      ['orders of 2000', 'orders of 1999'].map((name) => tidy.has(name)),
      [false, true],
    )
  }
  t.end()
})

await test('equal documents have the same text, from which each is read again', (t) => {
  const one = documentOf({ b: control(2), a: control(1), c: lifted(3) })
  const other = documentOf({ c: lifted(3), a: control(1), b: control(2) })
  t.equal(textOf(one), textOf(other))
  const [first, second] = ['["a",{"version":1,"at":2,"value":null}]', '["b",{"version":2,"at":3,"value":null}]']
  t.equal(textOf(documentOf({ b: lifted(2, 3), a: lifted(1, 2) })), `[${first},${second}]`)
  t.strictSame(shown(parseControls(textOf(one)) ?? new Map()), shown(one))
  t.equal(parseControls('no JSON'), undefined)
  t.equal(parseControls('{}'), undefined)
  t.end()
})
