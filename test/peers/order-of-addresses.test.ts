import { test } from 'tap'
import { inTurn, noteSilence } from '../../src/peers/silent-addresses.ts'

const six = (name: string) => ({ address: `2001:db8::${name}`, family: 6 })
const four = (host: number) => ({ address: `192.0.2.${host}`, family: 4 })

await test('Addresses of both families are tried in turn, and those that were silent last', (t) => {
  t.same(inTurn([]), [])
  t.same(inTurn([four(1), four(2)]), [four(1), four(2)])
  const addresses = [six('a'), six('b'), six('c'), four(1), four(2)]
  t.same(inTurn(addresses), [six('a'), four(1), six('b'), four(2), six('c')])
  noteSilence(six('a').address, true)
  noteSilence(four(1).address, true)
  t.same(inTurn(addresses), [six('b'), four(2), six('c'), six('a'), four(1)])
  noteSilence(six('a').address, false)
  t.same(inTurn(addresses), [six('a'), four(2), six('b'), six('c'), four(1)])
  t.end()
})
