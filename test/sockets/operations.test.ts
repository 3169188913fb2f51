import { test } from 'tap'
import { operationOf } from '../../src/sockets/relay/operations.ts'

const operation = (text: string): string => operationOf(Buffer.from(text))

await test('operations are recognised by name, whatever else a message is', async (t) => {
  t.equal(operation('{"ticks":"R_100","subscribe":1}'), 'ticks')
  t.equal(operation('{ "req_id": 3, "buy" : "x", "price": 10 }'), 'buy')
  t.equal(operation('{"passthrough":{"buy":1,"sell":[{"cancel":1}]},"time":1}'), 'time', 'not what is inside')
  t.equal(operation('{"passthrough":"{\\"buy\\":1}","balance":1}'), 'balance', 'nor what is in a string')
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
