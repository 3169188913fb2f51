import * as fc from 'fast-check'
import { test } from 'tap'
import { losers } from '../../src/sockets/losers.ts'

const KIB = 1024
const KINDS = ['public', 'session', 'trading'] as const

type Kind = (typeof KINDS)[number]

const socket = (kind: Kind, holder: string, kib: number) => ({ kind, holder, waitingBytes: kib * KIB })
/** Names a socket so that a failure can be read. */
const named = (lost: readonly ReturnType<typeof socket>[]): string[] =>
  lost.map(({ kind, holder, waitingBytes }) => `${kind} ${holder} ${waitingBytes / KIB}`)

await test('public sockets lose first, then session sockets, then trading sockets', (t) => {
  const open = [socket('trading', 'a', 900), socket('session', 'a', 200), socket('public', 'b', 100)]
  t.same(named(losers(open, 1)), ['public b 100'])
  t.same(named(losers(open, 100 * KIB)), ['public b 100'])
  t.same(named(losers(open, 100 * KIB + 1)), ['public b 100', 'session a 200'])
  t.same(named(losers(open, 2000 * KIB)), ['public b 100', 'session a 200', 'trading a 900'])
  t.end()
})

await test('a socket for which less than 64 KiB wait never loses', (t) => {
  const open = [
    { ...socket('public', 'a', 64), waitingBytes: 65_535 },
    socket('session', 'a', 63),
    socket('trading', 'b', 64),
  ]
  t.same(named(losers(open, 2000 * KIB)), ['trading b 64'])
  t.end()
})

await test('whoever has the most bytes for each open socket loses the largest', (t) => {
  const office = [700, 0, 0, 0, 0, 0, 0, 0, 0, 0].map((kib) => socket('public', 'office', kib))
  t.same(named(losers([...office, socket('public', 'stranger', 90)], 1)), ['public stranger 90'])
  t.same(named(losers([...office, socket('public', 'stranger', 65)], 1)), ['public office 700'])
  const two = [socket('trading', 'a', 300), socket('trading', 'a', 500), socket('trading', 'b', 350)]
  t.same(named(losers(two, 1)), ['trading a 500'])
  t.same(named(losers(two, 501 * KIB)), ['trading a 500', 'trading b 350'], 'each loss is weighed anew')
  t.end()
})

await test('sockets lose until enough is free, and no longer', (t) => {
  const sockets = fc.array(
    fc.record({
      kind: fc.constantFrom(...KINDS),
      holder: fc.constantFrom('a', 'b', 'c'),
      waitingBytes: fc.integer({ min: 0, max: 1_200_000 }),
    }),
    { maxLength: 40 },
  )
  fc.assert(
    fc.property(sockets, fc.integer({ min: 1, max: 20_000_000 }), (open, excess) => {
      const lost = losers(open, excess)
      const bytes = lost.map(({ waitingBytes }) => waitingBytes)
      const freed = bytes.reduce((sum, each) => sum + each, 0)
      const stay = open.filter((each) => !lost.includes(each))
      const isMean = freed - (bytes.at(-1) ?? 0) < excess
      const isEnough = freed >= excess || stay.every(({ waitingBytes }) => waitingBytes < 65_536)
      const ranks = lost.map(({ kind }) => KINDS.indexOf(kind))
      const last = ranks.at(-1) ?? 0
      const isInOrder = ranks.every((rank, index) => rank >= (ranks[index - 1] ?? 0))
      const isKindDone = stay.every(({ kind, waitingBytes }) => KINDS.indexOf(kind) >= last || waitingBytes < 65_536)
      return new Set(lost).size === lost.length && isMean && isEnough && isInOrder && isKindDone
    }),
  )
  t.end()
})

await test('sockets lose as if all holders were weighed anew after each loss', (t) => {
  const sockets = fc.array(
    fc.record({
      kind: fc.constantFrom(...KINDS),
      holder: fc.constantFrom('a', 'b', 'c', 'd'),
      // Few different sizes, so that sockets and holders are often equal.
      waitingBytes: fc.constantFrom(0, 1, 65_535, 65_536, 65_537, 100_000, 300_000, 1_000_000),
    }),
    { maxLength: 40 },
  )
  fc.assert(
    fc.property(
      sockets,
      fc.integer({ min: 1, max: 10_000_000 }),
      (open, excess) => named(losers(open, excess)).join() === named(weighed(open, excess)).join(),
    ),
  )
  t.end()
})

/** Weighs all holders, and takes the largest socket of the heaviest, until enough is free. */
function weighed(open: readonly ReturnType<typeof socket>[], excess: number): ReturnType<typeof socket>[] {
  const lost: ReturnType<typeof socket>[] = []
  let left = excess
  for (const kind of KINDS) {
    const all = open.filter((each) => each.kind === kind)
    for (;;) {
      const weights = [...new Set(all.map(({ holder }) => holder))].map((holder) => {
        const own = all.filter((each) => each.holder === holder && !lost.includes(each))
        const bytes = own.map(({ waitingBytes }) => waitingBytes)
        const largest = own.find(({ waitingBytes }) => waitingBytes >= 65_536 && waitingBytes === Math.max(...bytes))
        return { largest, each: bytes.reduce((sum, each) => sum + each, 0) / own.length }
      })
      const most = Math.max(...weights.map(({ largest, each }) => (largest === undefined ? 0 : each)))
      const next = weights.find(({ largest, each }) => largest !== undefined && each === most)?.largest
      if (left <= 0 || next === undefined) break
      left -= next.waitingBytes
      lost.push(next)
    }
  }
  return lost
}
