import * as fc from 'fast-check'
import { test } from 'tap'
import { FRAME_FAULTS } from '../support/client/tabs/feed-network.ts'
import { ACTS, walkFeed, type FeedWalk } from '../support/client/tabs/feed-page.ts'

/** More frames than a page needs until its stream and its charts go on. */
const FRAMES = 24
/** One in so many of them is tried, another one for each thing that happens. `npm run test:every-command` has all. */
const STEP = Number(process.env['STEP'] ?? 6)

/** The frames at which one of these happens. */
function framesFor<Kind>(kinds: readonly Kind[]): { readonly kind: Kind; readonly at: number }[] {
  const all = kinds.flatMap((kind) => Array.from({ length: FRAMES }, (_, at) => ({ kind, at })))
  return all.filter(({ kind, at }) => (at + kinds.indexOf(kind)) % STEP === 0)
}

await test('whatever happens to one frame, a stream and charts go on without a gap or a double, and nothing is left', async (t) => {
  for (const { kind: is, at } of framesFor(FRAME_FAULTS)) {
    t.same(await walkFeed({ faults: [{ at, is }], act: 'goes on', at }), [], `frame ${at} ${is}`)
  }
})

await test('whenever a page stops a stream and charts or begins them again, nothing more comes of those before, and nothing is left', async (t) => {
  for (const { kind: act, at } of framesFor(ACTS)) {
    t.same(await walkFeed({ faults: [], act, at }), [], `frame ${at}: it ${act}`)
  }
})

const fault = fc.record({ at: fc.nat(50), is: fc.constantFrom(...FRAME_FAULTS) })
const walk: fc.Arbitrary<FeedWalk> = fc.record({
  faults: fc.tuple(fault, fault),
  act: fc.constantFrom(...ACTS),
  at: fc.nat(50),
})

await test('whatever happens to two frames while a page stops and begins, its streams and charts are right in the end', async (t) => {
  const property = fc.asyncProperty(walk, async (each) => {
    const wrong = await walkFeed(each)
    if (wrong.length > 0) throw new Error(wrong.slice(0, 3).join('; '))
  })
  const { failed, seed, counterexample, errorInstance } = await fc.check(property, {
    numRuns: Number(process.env['RUNS'] ?? 15),
    ...(process.env['SEED'] !== undefined && { seed: Number(process.env['SEED']) }),
  })
  t.notOk(failed, `SEED=${seed} ${JSON.stringify(counterexample)} ${String(errorInstance)}`)
})
