import * as fc from 'fast-check'
import { test } from 'tap'
import { REPORTING_PERIOD } from '../../src/proxy/query-rules.ts'
import { startWorld, API } from '../support/world.ts'

const PATH = '/api/partners/analytics/v1/overview'
const DAY_MS = 86_400_000

/** The names of the wrong fields. */
const faults = (query: string) => REPORTING_PERIOD.check(query).map(({ field }) => field)
const pad = (width: number) => (number: number) => String(number).padStart(width, '0')
const asDate = (day: number) => new Date(day * DAY_MS).toISOString().slice(0, 10)

await test('a reporting period is two calendar dates in order, 730 days apart at most', (t) => {
  const good = [
    'start_date=2026-01-01&end_date=2026-01-01',
    'start_date=2024-02-29&end_date=2026-02-28',
    'end_date=2026-01-02&start_date=2026-01-01',
    'start_date=2026-01-01&end_date=2026-01-02&page=2&page=3',
    'start_date=2026%2D01-01&end_date=2026-01-02',
  ]
  for (const query of good) t.same(faults(query), [], query)
  const bad: Record<string, string[]> = {
    '': ['start_date', 'end_date'],
    'start_date=2026-01-01': ['end_date'],
    'end_date=2026-01-01': ['start_date'],
    'start_date=&end_date=': ['start_date', 'end_date'],
    'start_date=2026-01-02&end_date=2026-01-01': ['end_date'],
    'start_date=2024-02-29&end_date=2026-03-01': ['end_date'],
    'start_date=2026-02-29&end_date=2026-03-01': ['start_date'],
    'start_date=2026-02-30&end_date=2026-04-31': ['start_date', 'end_date'],
    'start_date=1900-02-29&end_date=1900-03-01': ['start_date'],
    'start_date=2026-13-01&end_date=2026-00-01': ['start_date', 'end_date'],
    'start_date=2026-1-1&end_date=26-01-01': ['start_date', 'end_date'],
    'start_date=2026-01-01T00:00:00Z&end_date=2026-01-02%00': ['start_date', 'end_date'],
    'start_date=2026&end_date=2026-01': ['start_date', 'end_date'],
    'start_date=2026-01-01T00:00:00.000Z&end_date=%2B012026-01-01': ['start_date', 'end_date'],
    'start_date=+2026-01-01&end_date=2026-01-02+': ['start_date', 'end_date'],
    'start_date=2026-01-01%0A&end_date=%32026-01-02x': ['start_date', 'end_date'],
    'start_date=2026-01-01&start_date=2026-01-01&end_date=2026-01-02': ['start_date'],
    'start_date=2026-01-01&st%61rt_date=2020-01-01&end_date=2026-01-02': ['start_date'],
    'start_date=2026-01-01;end_date=2026-01-02': ['start_date', 'end_date'],
    'START_DATE=2026-01-01&end_date=2026-01-02': ['start_date'],
    'start_date[]=2026-01-01&end_date=2026-01-02': ['start_date'],
    '?start_date=2026-01-01&end_date=2026-01-02': ['start_date'],
  }
  for (const [query, fields] of Object.entries(bad)) t.same(faults(query), fields, query)
  t.end()
})

await test('each wrong field is told what it must be', (t) => {
  for (const [query, message] of [
    ['end_date=2026-01-01', 'is required'],
    ['start_date=2026-01-01', 'is required'],
    ['start_date=2026-01-01&start_date=2026-01-01&end_date=2026-01-01', 'must be given once'],
    ['start_date=2026-02-30&end_date=2026-03-01', 'must be a calendar date, YYYY-MM-DD'],
    ['start_date=2026-01-02&end_date=2026-01-01', 'must be on or after start_date'],
    ['start_date=2024-02-29&end_date=2026-03-01', 'must be at most 730 days after start_date'],
  ] as const) {
    t.strictSame(
      REPORTING_PERIOD.check(query).map((fault) => fault.message),
      [message],
      query,
    )
  }
  t.end()
})

await test('the document of the server has both dates as parameters of the query that are required', (t) => {
  const schema = { type: 'string', format: 'date' }
  t.match(
    REPORTING_PERIOD.parameters,
    ['start_date', 'end_date'].map((name) => ({
      name,
      in: 'query',
      required: true,
      schema,
      description: /reporting period/,
    })),
  )
  t.equal(REPORTING_PERIOD.parameters.length, 2)
  t.match(REPORTING_PERIOD.parameters[1], { description: /on or after start_date and at most 730 days after it$/ })
  t.end()
})

await test('of any two days those pass that are 0 to 730 days apart', (t) => {
  const day = fc.integer({ min: 0, max: 60_000 })
  fc.assert(
    fc.property(day, fc.integer({ min: -900, max: 900 }), (start, days) => {
      const query = `start_date=${asDate(start)}&end_date=${asDate(Math.max(0, start + days))}`
      const apart = Math.max(0, start + days) - start
      return (faults(query).length === 0) === (apart >= 0 && apart <= 730)
    }),
  )
  t.end()
})

await test('of any text only a calendar date that exists passes', (t) => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.tuple(fc.nat(9999).map(pad(4)), fc.nat(14).map(pad(2)), fc.nat(33).map(pad(2))).map((parts) => parts.join('-')),
  )
  fc.assert(
    fc.property(text, (value) => {
      const encoded = encodeURIComponent(value.toWellFormed())
      const passes = faults(`start_date=${encoded}&end_date=${encoded}`).length === 0
      const [year = NaN, month = NaN, day = NaN] = value.split('-').map(Number)
      const date = new Date(0)
      date.setUTCFullYear(year, month - 1, day)
      const exists = /^\d{4}-\d\d-\d\d$/.test(value) && date.getUTCMonth() === month - 1 && date.getUTCDate() === day
      return passes === exists
    }),
    { numRuns: 500 },
  )
  t.end()
})

await test('GET /api/partners/analytics/v1/overview names each wrong field with 400, and does not call upstream', async (t) => {
  const { call, upstream } = await startWorld(t, API)
  const refused = await call('GET', `${PATH}?start_date=2026-02-30`)
  t.equal(refused.status, 400)
  t.equal(refused.headers['content-type'], 'application/problem+json')
  t.match(refused.json, {
    code: 'validation_failed',
    type: '/problems/validation_failed',
    errors: [
      { field: 'start_date', message: 'must be a calendar date, YYYY-MM-DD' },
      { field: 'end_date', message: 'is required' },
    ],
  })
  t.same(upstream.requests, [])
  const query = '?end_date=2026-01-02&start_date=2026-01-01&more=%20x'
  t.equal((await call('GET', PATH + query)).status, 200)
  t.equal(upstream.requests[0]?.target, PATH.slice('/api'.length) + query, 'the query passes unchanged')
})

await test('without PARTNER_OVERVIEW_PATH the overview is 404', async (t) => {
  const { call, upstream } = await startWorld(t, { ...API, settings: { PARTNER_OVERVIEW_PATH: '' } })
  const response = await call('GET', `${PATH}?start_date=2026-01-01&end_date=2026-01-02`)
  t.equal(response.status, 404)
  t.same(upstream.requests, [])
})
