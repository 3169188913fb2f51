import * as fc from 'fast-check'
import { test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { pack, unpack } from '../../src/proxy/idempotency/compact-record.ts'
import { digestOf, type CallRecord } from '../../src/proxy/idempotency/record.ts'
import { SealedRecords } from '../../src/proxy/idempotency/sealed-records.ts'
import { Envelope } from '../../src/sessions/index.ts'
import { DIGEST } from '../support/idempotency/records.ts'
import { SECRETS } from '../support/server/test-server.ts'

const envelope = new Envelope(new Changeable([SECRETS]))

const body = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes))
const text = fc.string({ unit: fc.integer({ min: 0x20, max: 0xff }).map((code) => String.fromCodePoint(code)) })
const headers = fc.record(
  {
    'content-type': fc.oneof(fc.constantFrom('application/json', 'application/json; charset=utf-8'), text),
    'content-length': fc.nat().map(String),
    etag: text,
    'x-ratelimit-limit': fc.array(text, { minLength: 2, maxLength: 3 }),
  },
  { requiredKeys: [] },
)
const status = fc.integer({ min: 100, max: 999 })
const record: fc.Arbitrary<CallRecord> = fc
  .tuple(
    body,
    fc.oneof(
      fc.record({ is: fc.constant('running' as const), leaseUntil: fc.double({ noNaN: true, min: 0, max: 1e14 }) }),
      fc.record({ is: fc.constant('answered' as const), status, headers, body }),
      fc
        .record({ is: fc.constant('answered' as const), status, headers, body })
        .map((answered) =>
          Object.assign(answered, { headers: { ...answered.headers, 'content-length': String(answered.body.length) } }),
        ),
      fc.record({ is: fc.constant('not_kept' as const), status }),
      fc.record({ is: fc.constant('unknown' as const) }),
    ),
  )
  .map(([call, rest]) => Object.assign(rest, { digest: digestOf('POST', '/', call) }))

await test('a record is opened as it was sealed, in either form, and knows its call', async (t) => {
  const place = { recordKey: 'key', sessionId: 'session' }
  const [json, compact] = [new SealedRecords(envelope, false), new SealedRecords(envelope, true)]
  fc.assert(
    fc.property(record, (one) => {
      const plain = structuredClone({ ...one, digest: '' })
      return [json, compact].every((form) => {
        const opened = (form === json ? compact : json).open(place, form.seal(place, one))
        return (
          opened !== undefined &&
          one.digest.startsWith(opened.digest) &&
          opened.digest.length >= 12 &&
          JSON.stringify(sorted({ ...opened, digest: '' })) === JSON.stringify(sorted(plain))
        )
      })
    }),
    { examples: [[withHeaders({ 'content-length': '500' })], [withHeaders({})]] },
  )
  const later = pack({ is: 'unknown', digest: DIGEST })
  later[0] = 77
  t.equal(unpack(later), undefined, 'a kind of a later version')
  t.notOk(DIGEST.startsWith(digestOf('POST', '/other', null).slice(0, 12)))
})

/** A response without a body, as to a 304, whose length is that of another response or is not there. */
function withHeaders(length: { readonly 'content-length'?: string }): CallRecord {
  const headers = { 'content-type': 'application/json', ...length }
  return { is: 'answered', digest: DIGEST, status: 304, headers, body: Buffer.alloc(0) }
}

/** With its members in one order. */
function sorted(value: object): object {
  const entries = Object.entries(value).toSorted(([one], [two]) => (one < two ? -1 : 1))
  return Object.fromEntries(
    entries.map(([name, each]) => [name, Buffer.isBuffer(each) || each instanceof Uint8Array ? [...each] : each]),
  )
}

await test('a record is written in the form that was asked for, and one of a later version is opened by nobody', (t) => {
  const place = { recordKey: 'key', sessionId: 'session' }
  const [json, compact] = [new SealedRecords(envelope, false), new SealedRecords(envelope, true)]
  const one: CallRecord = { is: 'not_kept', digest: DIGEST, status: 200 }
  t.match(JSON.parse(envelope.open(place.recordKey, place.sessionId, json.seal(place, one)) ?? ''), one)
  t.same(envelope.openBytes(place.recordKey, place.sessionId, compact.seal(place, one)), pack(one))
  const later = envelope.seal(place.recordKey, place.sessionId, JSON.stringify({ is: 'later', digest: DIGEST }))
  for (const form of [json, compact]) {
    t.equal(form.open(place, later), undefined)
    t.equal(form.open({ ...place, sessionId: 'another' }, form.seal(place, one)), undefined)
  }
  t.end()
})

await test('a compact record names the common types of a response, and writes out all other headers', (t) => {
  const digest = Buffer.from(DIGEST, 'base64url').subarray(0, 9)
  const body = Buffer.from('{}')
  const answered = (headers: Record<string, string>): CallRecord => ({
    is: 'answered',
    digest: digest.toString('base64url'),
    status: 201,
    headers,
    body,
  })
  const head = Buffer.concat([Buffer.from([1]), digest, Buffer.from([0, 201])])
  for (const [place, type] of ['application/json', 'application/json; charset=utf-8'].entries()) {
    const common = answered({ 'content-type': type, 'content-length': '2' })
    const bytes = Buffer.concat([head, Buffer.from([place]), body])
    t.same(pack(common), bytes)
    t.same(unpack(bytes), common)
  }
  for (const headers of [
    { 'content-type': 'text/plain', 'content-length': '2' },
    { 'content-type': 'application/json', 'content-length': '3' },
    { 'content-type': 'application/json', 'content-length': '2', etag: '"1"' },
    { 'content-length': '2' },
  ]) {
    const written = Buffer.from(JSON.stringify(headers))
    const bytes = Buffer.concat([head, Buffer.from([0xff, 0, 0, 0, written.length]), written, body])
    t.same(pack(answered(headers)), bytes)
    t.same(unpack(bytes), answered(headers))
  }
  t.end()
})
