import { mock } from 'node:test'
import { test } from 'tap'
import { auditBounded } from '../../src/telemetry/audit/audit.ts'
import { flushBoundedLines } from '../../src/telemetry/bounded-lines.ts'
import { logInto, type Line } from '../support/telemetry/lines.ts'
import { exactly } from '../support/exactly.ts'

const WINDOW_MS = 10_000

/** How many events the lines stand for. */
const total = (lines: readonly Line[]): number => lines.reduce((sum, { count = 1 }) => sum + Number(count), 0)

await test('auditBounded writes the first lines of a source at once, then one line for each ten seconds', (t) => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => mock.timers.reset())
  const lines: Line[] = []
  const log = logInto(lines)
  const refuse = (reqId: string, source = 'one'): void =>
    auditBounded(log.child({ reqId }), 'ops_refused', { client: source }, source)
  for (let call = 1; call <= 8; call++) refuse(`r${call}`)
  t.same(
    lines.map(({ reqId }) => reqId),
    ['r1', 'r2', 'r3', 'r4', 'r5'],
  )
  t.notOk(lines.some((line) => 'count' in line))
  refuse('other', 'two')
  t.equal(lines.length, 6, 'another source has lines of its own')
  mock.timers.tick(WINDOW_MS)
  t.match(
    lines.slice(6),
    exactly({ audit: 'ops_refused', count: 3, reqId: 'r8', client: 'one' }),
    'the newest names its request',
  )
  for (let call = 1; call <= 100; call++) refuse(`again ${call}`)
  t.equal(lines.length, 7, 'a source that goes on gets no more lines at once')
  mock.timers.tick(WINDOW_MS)
  t.match(lines.slice(7), exactly({ count: 100, reqId: 'again 100' }))
  mock.timers.tick(WINDOW_MS)
  refuse('later')
  t.match(lines.slice(8), exactly({ reqId: 'later' }), 'after ten quiet seconds the next one is written at once')
  t.end()
})

await test('auditBounded bounds lines and memory for ever new sources, and loses none of the events', (t) => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => mock.timers.reset())
  const lines: Line[] = []
  const log = logInto(lines)
  for (let call = 0; call < 100_000; call++) {
    const client = `192.0.2.${call}`
    auditBounded(log, 'ops_refused', { client }, client)
  }
  t.equal(lines.length, 105)
  mock.timers.tick(WINDOW_MS)
  t.equal(lines.length, 106)
  t.equal(total(lines), 100_000)
  t.end()
})

await test('flushBoundedLines writes what is still only counted, once', (t) => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => mock.timers.reset())
  const lines: Line[] = []
  const log = logInto(lines)
  for (let call = 0; call < 9; call++)
    auditBounded(log.child({ reqId: `r${call}` }), 'ops_refused', { client: 'one' }, 'one')
  flushBoundedLines(log)
  flushBoundedLines(log)
  mock.timers.tick(WINDOW_MS)
  t.equal(lines.length, 6)
  t.equal(total(lines), 9)
  t.end()
})
