import { test } from 'tap'
import { ADVICE, adviceFor, explained, writeRefusalOf } from '../../src/store/servers/causes.ts'

await test('each code has a remedy in whole sentences', (t) => {
  for (const [code, advice] of Object.entries(ADVICE)) {
    t.match(advice, /^[A-Z].{20,}\S\.?[\w.]+$/s, code)
    t.equal(adviceFor(code), advice)
  }
  t.end()
})

await test('a reason for which a link is down has the remedy of what it means', (t) => {
  t.equal(adviceFor('it is a slave'), ADVICE['READONLY'])
  for (const silent of ['silence', 'deadline', 'ETIMEDOUT', 'CommandTimeout', 'ECONNREFUSED', 'closed'])
    t.equal(adviceFor(silent), ADVICE['SILENT'], silent)
  t.equal(adviceFor('another'), undefined)
  t.end()
})

await test('a reason is explained by its detail and its remedy, as far as there are any', (t) => {
  t.same(
    [explained('OOM'), explained('silence', 'one'), explained('another'), explained('another', 'one')],
    [`OOM. ${ADVICE['OOM']}`, `silence: one. ${ADVICE['SILENT']}`, 'another', 'another: one'],
  )
  t.end()
})

await test('the codes of refused writes are known, and no others', (t) => {
  t.same(['OOM', 'MISCONF', 'NOREPLICAS', 'READONLY', 'NOPERM', undefined].map(writeRefusalOf), [
    'oom',
    'misconf',
    'noreplicas',
    'readonly',
    undefined,
    undefined,
  ])
  t.end()
})
