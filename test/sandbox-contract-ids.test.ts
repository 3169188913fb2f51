import { test } from 'tap'
import { BIG_IDS, FIRST_ID, PLAIN_IDS } from '../sandbox/upstream/contract-ids.ts'

await test('Big ids of contracts are no numbers of JavaScript, and lead back to those of the sandbox', (t) => {
  const own = `{"buy":{"contract_id":${FIRST_ID},"transaction_id":${FIRST_ID}},"echo_req":{"contract_id":${FIRST_ID + 1}}}`
  const text = BIG_IDS.write(own)
  t.equal(
    text,
    `{"buy":{"contract_id":9007199254740993,"transaction_id":${FIRST_ID}},"echo_req":{"contract_id":9007199254740994}}`,
  )
  t.equal(BIG_IDS.read(text), own)
  t.equal(BIG_IDS.outside(FIRST_ID), '9007199254740993')
  t.equal(BIG_IDS.read('{"sell":9007199254740993,"price":0}'), `{"sell":${FIRST_ID},"price":0}`)
  t.equal(PLAIN_IDS.read(PLAIN_IDS.write(own)), own)
  t.end()
})
