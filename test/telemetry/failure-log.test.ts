import { test } from 'tap'
import { flushBoundedLines } from '../../src/telemetry/bounded-lines.ts'
import { logFailure } from '../../src/telemetry/failure-log.ts'
import { failureCount, logInto, type Line } from '../support/telemetry/lines.ts'
import { until } from '../support/time/until.ts'
import { exactly } from '../support/exactly.ts'

await test('logFailure logs the first failure at once and counts the others in one line after a second', async (t) => {
  const lines: Line[] = []
  const log = logInto(lines)
  for (let times = 0; times < 10; times++) {
    const cause = Object.assign(new Error(`local port ${times}`), { code: 'ECONNRESET' })
    logFailure(log.child({ reqId: `r${times}` }), 'it failed', { code: 'lost' }, cause)
  }
  t.match(lines, exactly({ count: 1, reqId: 'r0', level: 40, code: 'lost', cause: { code: 'ECONNRESET' } }))
  await until(() => lines.length === 2)
  t.match(lines[1], { count: 9, reqId: 'r9' })
  logFailure(log, 'it failed', { code: 'lost' }, new Error('another cause'))
  t.equal(lines.length, 3, 'another cause is logged at once')
  flushBoundedLines(log)
  t.equal(lines.length, 3, 'no failure is logged twice')
})

await test('logFailure bounds the number of lines, and of kinds that it remembers, for ever new failures', async (t) => {
  const lines: Line[] = []
  const log = logInto(lines)
  for (let times = 0; times < 5000; times++) {
    logFailure(log, 'it failed', {}, new Error(`reason ${times} ${'x'.repeat(10_000)}`))
  }
  t.equal(lines.length, 101)
  t.ok(lines.every((line) => JSON.stringify(line).length < 1000))
  flushBoundedLines(log)
  t.equal(failureCount(lines, 'it failed') + failureCount(lines, 'failures of too many kinds to tell them apart'), 5000)
})

await test('logFailure logs of an error no other field than its code, and no text of one that may be secret', (t) => {
  const lines: Line[] = []
  const log = logInto(lines)
  const url = 'ws://upstream.example/?otp=secret'
  const cause = Object.assign(new Error('it was refused'), { code: 'E1', url })
  logFailure(log, 'it failed', {}, cause)
  t.same(lines.at(-1)?.['cause'], { type: 'Error', code: 'E1', message: 'it was refused' })
  logFailure(log, 'it failed', { why: 'refused (E1)' }, new Error(url))
  t.match(lines.at(-1), { why: 'refused (E1)', cause: undefined })
  flushBoundedLines(log)
  t.end()
})
