import { test } from 'tap'
import { operationOf } from '../../src/sockets/operations.ts'

const operation = (text: string): string => operationOf(Buffer.from(text))

await test('operationOf returns the first known top-level name of a message, and other without one', async (t) => {
  t.equal(operation('{"ticks":"R_100","subscribe":1}'), 'ticks')
  t.equal(operation('{ "req_id": 3, "buy" : "x", "price": 10 }'), 'buy')
  t.equal(operation('{"passthrough":{"buy":1,"sell":[{"cancel":1}]},"time":1}'), 'time', 'nested names do not count')
  t.equal(operation('{"passthrough":"{\\"buy\\":1}","balance":1}'), 'balance', 'names inside a string do not count')
  t.equal(operation('{"proposal_open_contract":1}'), 'proposal_open_contract')
  for (const text of [
    '',
    '{',
    '"buy"',
    '"buy":1',
    '[]',
    '{"buy"',
    '{"unknown":1}',
    '{"__proto__":1}',
    '{"constructor":1}',
    'ÿ{]]]"buy":1',
    `{"${'x'.repeat(600)}":1,"buy":1}`,
  ]) {
    t.equal(operation(text), 'other', text.slice(0, 20))
  }
  for (const nasty of ['"\\', '"\\"', '{"', '[', '"a" ', '\\']) {
    t.type(operation(nasty.repeat(100_000)), 'string')
  }
})
