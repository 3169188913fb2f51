import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import { test } from 'tap'
import type { Fate, FoundContract } from '../../client/dist/client/orders.js'
import { contractsOf } from '../../client/src/orders/contracts.ts'
import { decimal, isSameAmount } from '../../client/src/orders/decimal.ts'
import type { Handling, Offer } from '../support/client/lossy-account.ts'
import { losing, RISE } from '../support/client/lost-orders.ts'
import { until } from '../support/time/until.ts'

const MADE: Handling = { executes: 'at once', answer: 'cut' }
const LOST: Handling = { executes: 'never', answer: 'cut' }
const FALL: Offer = { ...RISE, contract_type: 'PUT' }
const BIG = 9_007_199_254_740_993n

/** The contract that an order has bought: its id in the very form, which is equal to that of a neighbour as a number. */
function boughtBy(found: Fate): Pick<FoundContract, 'contract_id' | 'contract_type'> | undefined {
  if (found.is !== 'made') return undefined
  const { contract_id, contract_type } = found.contract
  return { contract_id, ...(contract_type && { contract_type }) }
}

await test('fate: a contract whose id is beyond 2^53 is made with its own id, also as a text or a word', async (t) => {
  for (const id of [BIG, String(BIG), 'word-7', 7, '8']) {
    const { lose, find, account } = await losing(t)
    account.nextId = id
    const contract_id = typeof id === 'bigint' ? String(id) : id
    t.same(boughtBy(await find(await lose(MADE))), { contract_id, contract_type: 'CALL' })
  }
})

await test('fate: two contracts that fit are ambiguous, although one number would stand for both ids', async (t) => {
  const { lose, find, account } = await losing(t)
  account.nextId = BIG
  const error = await lose(MADE)
  account.nextId = BIG - 1n
  account.buyElsewhere(RISE)
  const found = await find(error)
  t.equal(found.is, 'ambiguous')
  const ids = found.is === 'ambiguous' ? found.candidates.map(({ contract_id }) => contract_id) : []
  t.same(new Set(ids), new Set([String(BIG - 1n), String(BIG)]))
})

await test('fate: a contract is not a known one whose id is its neighbour, and a known one is known in any form', async (t) => {
  for (const [known, bought] of [
    [BIG, BIG - 1n],
    [BIG - 1n, BIG],
  ] as const) {
    const { lose, find, account, socket } = await losing(t)
    account.nextId = known
    account.buyElsewhere(RISE)
    await socket.request({ portfolio: 1 })
    account.nextId = bought
    t.equal(boughtBy(await find(await lose(MADE)))?.contract_id, String(bought))
  }
  const { lose, find, account, socket } = await losing(t)
  const other = account.buyElsewhere(FALL)
  await socket.request({ portfolio: 1 })
  Object.assign(other, { contract_id: String(other.contract_id) })
  t.match(await find(await lose(LOST, FALL)), { is: 'not_seen' }, 'a number before, a text now')
})

await test('fate: the contract that was found for an order is that of no later one, which is not ambiguous because of it', async (t) => {
  const { lose, find, account } = await losing(t)
  t.match(await find(await lose(MADE)), { is: 'made', contract: { contract_id: account.truth.get(1) } })
  t.match(await find(await lose(MADE)), { is: 'made', contract: { contract_id: account.truth.get(2) } })
  t.match(await find(await lose(LOST)), { is: 'not_seen' })
})

await test('fate: the type of a contract beyond 2^53 is asked for by its own id', async (t) => {
  const { lose, find, account } = await losing(t)
  const error = await lose({ executes: 'late', answer: 'cut' })
  account.nextId = BIG
  // A transaction has no type, so that it has to be asked for.
  const found = await find(error, () => {
    account.executeLate()
    return until(() => account.reads === 3)
  })
  t.same(boughtBy(found), { contract_id: String(BIG), contract_type: 'CALL' })
  t.ok(found.is === 'made' && found.contract.shortcode === undefined, 'so no list had to be read')
})

await test('fate: amounts that differ by less than a millionth are not the same, and the same may be written in several ways', async (t) => {
  const large = { ...RISE, amount: 300_000 }
  const { lose, find, account } = await losing(t)
  const error = await lose(LOST, large)
  account.buyElsewhere({ ...RISE, amount: 300_000.2 })
  t.match(await find(error), { is: 'not_seen' })
  for (const amount of [(value: number) => value.toFixed(2), String, (value: number) => `+${value}.000`, Number]) {
    const world = await losing(t)
    world.account.amount = amount
    t.match(await world.find(await world.lose(MADE)), { is: 'made', contract: { buy_price: 10, payout: 20 } })
  }
})

await test('fate: an amount that cannot be told from the sum of the page is ambiguous, and so is one that is no amount', async (t) => {
  const sum = { ...RISE, amount: 0.1 + 0.2 }
  for (const written of [() => 0.3, () => '0.30', () => 'n/a', () => null]) {
    const { lose, find, account } = await losing(t)
    account.amount = written
    account.propose('any', RISE)
    const found = await find(await lose(MADE, sum))
    t.match(found, { is: 'ambiguous', candidates: { length: 1 } }, String(written))
  }
})

await test('a decimal number is written in one way, whatever its form, and two that differ are not the same', (t) => {
  const number = fc.tuple(fc.bigInt({ min: 0n, max: 10n ** 30n }), fc.nat(20))
  fc.assert(
    fc.property(
      number,
      fc.nat(5),
      fc.nat(5),
      fc.integer({ min: -9, max: 9 }),
      ([digits, places], before, after, shift) => {
        const padded = String(digits).padStart(places + 1, '0')
        const whole = padded.slice(0, padded.length - places)
        const fraction = padded.slice(padded.length - places)
        const forms = [
          `${'0'.repeat(before)}${whole}.${fraction}${'0'.repeat(after)}`,
          `${digits}e${-places}`,
          `${digits}${'0'.repeat(after)}E${-places - after}`,
          `+${digits}.e-${places}`,
          ` ${digits}e${shift - places - shift} `,
        ]
        assert.equal(new Set(forms.map(decimal)).size, 1, forms.join(' '))
        if (digits > 0n) assert.notEqual(decimal(`-${forms[0]}`), decimal(forms[0]))
        assert.notEqual(decimal(`${digits + 1n}e${-places}`), decimal(forms[0]))
      },
    ),
  )
  for (const [one, other, same] of [
    [10, '10.00', 'yes'],
    ['1e-7', 0.0000001, 'yes'],
    ['0.0', 0, 'yes'],
    ['-0', '0', 'yes'],
    [300_000, '300000.20', 'no'],
    ['9007199254740993', '9007199254740992', 'no'],
    [0.1 + 0.2, '0.3', 'maybe'],
    ['word', 'word', 'yes'],
  ] as const) {
    t.equal(isSameAmount(one, other), same, `${one} ${other}`)
  }
  t.end()
})

await test('a transaction says what a purchase has cost, with or without a sign, however small it is', (t) => {
  for (const amount of [10, -10, '-10', 1e-7, -1e-7, '1e-7', '-1e-7'])
    t.match(contractsOf({ transaction: { action: 'buy', contract_id: 7, amount } }), [
      { buy_price: Math.abs(Number(amount)) },
    ])
  t.end()
})
