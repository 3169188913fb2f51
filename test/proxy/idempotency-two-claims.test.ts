import { test } from 'tap'
import type { Claim, Ending } from '../../src/proxy/idempotency/claim.ts'
import { TwoClaims } from '../../src/proxy/idempotency/two-claims.ts'
import { ANSWER } from '../support/idempotency/records.ts'

type Flags = Partial<Pick<Claim, 'mayKeep' | 'maySend' | 'isLost'>>

/** A claim of one name, and what it was told. */
function claimed(flags: Flags) {
  const told: unknown[] = []
  const end =
    (ending: Ending) =>
    async (...args: unknown[]): Promise<Ending> => {
      // It takes a while to write.
      await new Promise(setImmediate)
      told.push(ending, ...args)
      return ending
    }
  const claim = {
    own: {},
    mayKeep: true,
    maySend: true,
    isLost: false,
    onLost: () => undefined,
    keep: end('answered'),
    finish: end('unknown'),
    free: end('freed'),
    ...flags,
  }
  return { claim: claim as unknown as Claim, told }
}

const two = (first: Flags, second: Flags) => {
  const [one, other] = [claimed(first), claimed(second)]
  return { one, other, both: new TwoClaims(one.claim, other.claim) }
}

await test('a call with a quoted key may be sent, and its response kept, by the claims of both names, and either may be lost', (t) => {
  for (const [first, second] of [
    [true, true],
    [true, false],
    [false, true],
    [false, false],
  ] as const) {
    const { both, one } = two(
      { mayKeep: first, maySend: first, isLost: !first },
      { mayKeep: second, maySend: second, isLost: !second },
    )
    const isBoth = first && second
    t.same([both.mayKeep, both.maySend, both.isLost], [isBoth, isBoth, !isBoth], `${first} and ${second}`)
    t.equal(both.own, one.claim.own, 'the record that is found first')
  }
  t.end()
})

await test('the loss of either claim of a quoted key is told', (t) => {
  const { one, other, both } = two({}, {})
  let losses = 0
  both.onLost = () => losses++
  one.claim.onLost()
  other.claim.onLost()
  t.equal(losses, 2)
  t.end()
})

await test('both records of a quoted key say how its call ended before it is answered', async (t) => {
  for (const [end, told] of [
    [(both: TwoClaims) => both.keep(ANSWER), ['answered', ANSWER]],
    [(both: TwoClaims) => both.finish({ is: 'unknown' }), ['unknown', { is: 'unknown' }]],
    [(both: TwoClaims) => both.free(), ['freed']],
  ] as const) {
    const { one, other, both } = two({}, {})
    t.equal(await end(both), told[0])
    t.same([one.told, other.told], [told, told])
  }
})

await test('a quoted key whose call is unknown under its first name is not freed under the second', async (t) => {
  const { one, other, both } = two({ isLost: true }, {})
  t.equal(await both.free(), 'freed')
  t.same([one.told, other.told], [['freed'], ['unknown', { is: 'unknown' }]])
})

await test('that the first name of a quoted key is unknown may turn out when it is freed', async (t) => {
  const { one, other, both } = two({}, {})
  const free = one.claim.free.bind(one.claim)
  one.claim.free = async () => {
    const ending = await free()
    Object.assign(one.claim, { isLost: true })
    return ending
  }
  await both.free()
  t.same(other.told, ['unknown', { is: 'unknown' }])
})
