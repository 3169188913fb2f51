import * as fc from 'fast-check'
import { test } from 'tap'
import { CanonicalJson, printed } from '../support/feed/search/canonical-json.ts'
import { play } from '../support/feed/search/play.ts'
import { scripts, type Size } from '../support/feed/search/script.ts'
import { left, REPEAT, RUNS, search, searchWorld, SEED } from '../support/feed/search/search.ts'

/** Times RUNS. With the SEED and the RUNS that a failed test prints, `npm test` repeats its sessions (CONTRIBUTING.md). */
const SHARED_SESSIONS = 60
const LATE_SESSIONS = 30

const SHARED = { clock: 'shared', losses: false, refusals: false } as const
/** Nothing is kept that a move of prices would change; several sockets share the streams. */
const SETTINGS = {
  FEED_CACHE_SECONDS: '0',
  FEED_LINGER_SECONDS: '1',
  FEED_SUBSCRIPTIONS: '80',
  FEED_SUBSCRIPTIONS_PER_SOCKET: '4',
}
const FEW: Size = {
  browsers: fc.oneof(
    { weight: 8, arbitrary: fc.integer({ min: 1, max: 4 }) },
    { weight: 3, arbitrary: fc.integer({ min: 5, max: 12 }) },
    { weight: 1, arbitrary: fc.integer({ min: 13, max: 50 }) },
  ),
  actions: 6,
  steps: [2, 14],
}

const isPrice = (text: string): boolean => /"(?:tick|ohlc)"/.test(text) && text.includes('"subscription"')

/** What browsers get in place of a message. Undefined if it is not concerned. */
const FAULTS: Readonly<Record<string, (text: string) => readonly string[] | undefined>> = {
  'an answer with a wrong req_id': (text) => {
    const members = CanonicalJson.members(text)
    const own = members.get('req_id')
    return own === undefined ? undefined : [printed(new Map([...members, ['req_id', own === '1' ? '2' : '1']]))]
  },
  'a price is lost': (text) => (isPrice(text) ? [] : undefined),
  'a price comes twice': (text) => (isPrice(text) ? [text, text] : undefined),
  'a number is printed again': (text) => {
    const again = JSON.stringify(JSON.parse(text))
    return CanonicalJson.of(again) === CanonicalJson.of(text) ? undefined : [again]
  },
}

await test('a fault between the server and its browsers would be found', async (t) => {
  let spoil: (typeof FAULTS)[string] | undefined
  let isSpoilt = false
  const world = await searchWorld(t, SHARED, SETTINGS, (browser, text) => {
    const spoilt = isSpoilt ? undefined : spoil?.(text)
    isSpoilt ||= spoilt !== undefined
    for (const each of spoilt ?? [text]) browser.take(each)
  })
  for (const [name, fault] of Object.entries(FAULTS)) {
    spoil = fault
    isSpoilt = false
    for (const script of fc.sample(scripts(SHARED, FEW), { seed: SEED, numRuns: 50 })) {
      const soon = await play(script, { ...world, patienceMs: 300 })
      // On a slow machine, what nothing has spoilt may only be late.
      const faults = isSpoilt || soon.length === 0 ? soon : await play(script, world)
      t.equal(faults.length > 0, isSpoilt, name)
      const wrong = faults.filter((each) => !/^(?:no|step) /.test(each))
      t.ok(wrong.length === 0 || !faults.some((each) => each.startsWith('no ')), 'nobody waits once something is wrong')
      if (isSpoilt) break
    }
    t.ok(isSpoilt, `${name}, ${REPEAT}`)
  }
})

await test(`each browser receives what upstream says to it, once and in order, in ${RUNS * SHARED_SESSIONS} sessions`, async (t) => {
  const world = await searchWorld(t, SHARED, SETTINGS)
  t.equal(await search(world, FEW, RUNS * SHARED_SESSIONS), undefined)
  t.same(await left(world), [0, 0, 0, 0, 0], 'nothing is left of any browser')
})

await test(`histories ahead of and behind their streams are continued without a gap in ${RUNS * LATE_SESSIONS} sessions`, async (t) => {
  const world = await searchWorld(t, { ...SHARED, clock: 'late' }, { FEED_LINGER_SECONDS: '0' })
  const size: Size = { browsers: fc.integer({ min: 1, max: 8 }), actions: 2, steps: [100, 150] }
  t.equal(await search(world, size, RUNS * LATE_SESSIONS), undefined)
})
