import { test } from 'tap'
import { parseHttpDate } from '../../src/time/http-date.ts'

await test('an HTTP date has three forms, and nothing else is one', (t) => {
  for (const text of ['Sun, 06 Nov 1994 08:49:37 GMT', 'Sunday, 06-Nov-94 08:49:37 GMT', 'Sun Nov  6 08:49:37 1994'])
    t.equal(parseHttpDate(text), Date.UTC(1994, 10, 6, 8, 49, 37), text)
  for (const text of ['', '120', '-5', '7, 7', '1994-11-06', 'Sunday']) t.ok(Number.isNaN(parseHttpDate(text)), text)
  t.end()
})
