import { test } from 'tap'
import * as fc from 'fast-check'
import { logTime } from '../../src/telemetry/log.ts'

const START = Date.parse('2026-02-28T23:59:58.995Z')

await test('the time of a log line is that of the moment, whenever the line before was written', (t) => {
  const steps = fc.array(fc.oneof(fc.integer({ min: 0, max: 9 }), fc.integer({ min: -90_000_000, max: 90_000_000 })))
  fc.assert(
    fc.property(steps, (all) => {
      let now = START
      for (const step of all) {
        now += step
        const line = logTime(now)
        if (line !== `,"time":"${new Date(now).toISOString()}"`) throw new Error(line)
      }
    }),
  )
  t.equal(logTime(START + 10), ',"time":"2026-02-28T23:59:59.005Z"')
  const before = Date.now()
  const shown = Date.parse(/"time":"([^"]*)"/.exec(logTime())?.[1] ?? '')
  t.ok(before <= shown && shown <= Date.now())
  t.end()
})
