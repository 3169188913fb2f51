import { test, type Test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { IdempotencyRecords } from '../../src/proxy/idempotency/idempotency-records.ts'
import { digestOf } from '../../src/proxy/idempotency/record.ts'
import { SealedRecords } from '../../src/proxy/idempotency/sealed-records.ts'
import { Envelope } from '../../src/sessions/index.ts'
import { idempotencyKey } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { storeClient } from '../support/redis/store-client.ts'
import { DIGEST, LIMITS, sessionIn } from '../support/idempotency/records.ts'
import { codeOf, keyedWorld } from '../support/idempotency/keyed-world.ts'
import { SECRETS, testRedis } from '../support/server/test-server.ts'

const envelope = new Envelope(new Changeable([SECRETS]))

await test('Of two instances, one of which writes compact records, each answers a repetition of what the other has answered', async (t) => {
  const { upstream, order, server, other } = await keyedWorld(t)
  for (const [key, first, second] of [
    ['one', server, other],
    ['"two"', other, server],
  ] as const) {
    upstream.reset()
    const answer = await order({ key, at: first })
    t.equal(answer.status, 200)
    const again = await order({ key, at: second })
    t.same([again.status, again.bytes], [answer.status, answer.bytes])
    t.equal(again.headers['idempotency-replayed'], 'true')
    t.equal(codeOf(await order({ key, at: second, body: '{"amount":2}' })), 'idempotency_key_reused')
    t.equal(upstream.requests.length, 1)
  }
})

/** The bytes that Redis needs more for each call, with responses of so many bytes. */
async function bytesPerCall(t: Test, isCompact: boolean, length: number): Promise<number> {
  const redis = await testRedis(t)
  const [store, client] = await Promise.all([connectedStore(t, redis.url), storeClient(t, { redis })])
  const used = async (): Promise<number> => {
    const memory = await client.info('memory')
    const bytes = (of: string): number => Number(new RegExp(`^${of}:(\\d+)`, 'm').exec(memory)?.[1])
    // The buffers of the connections grow and shrink by kilobytes.
    return bytes('used_memory') - bytes('mem_clients_normal')
  }
  const records = new IdempotencyRecords(store, envelope, { ...LIMITS, maxRecords: 1000, isCompact })
  const answer = {
    status: 201,
    headers: { 'content-type': 'application/json; charset=utf-8', 'content-length': String(length) },
    body: Buffer.alloc(length, '{"id":1}'),
  }
  const sessions = await Promise.all(Array.from({ length: 50 }, () => sessionIn(store)))
  const call = async (count: number): Promise<void> => {
    for (const session of sessions) {
      const claimed = await records.claim(session, `key ${count}`, DIGEST)
      if (claimed.is !== 'claimed') throw new Error(claimed.is)
      await claimed.claim.keep(answer)
    }
  }
  // Between these numbers of keys Redis does not enlarge its tables.
  const [from, to] = [22, 37]
  for (let count = 0; count < from; count++) await call(count)
  const before = await used()
  for (let count = from; count < to; count++) await call(count)
  return ((await used()) - before) / ((to - from) * sessions.length)
}

await test('A compact record of a call with a small JSON response needs half of the memory of Redis', async (t) => {
  for (const length of [72, 100]) {
    const [json, compact] = [await bytesPerCall(t, false, length), await bytesPerCall(t, true, length)]
    t.comment(`${length} bytes: ${Math.round(json)} as JSON, ${Math.round(compact)} compact`)
    t.ok(compact <= json / 2, `${compact} of ${json}`)
  }
})

/** Written by version 0.3 (commit 438ca021): records of the session `id`, the key `key`, and the call `POST /path`. */
const SECRET_OF_0_3 = 'a-secret-of-the-test-of-thirty-two-bytes'
const RECORD_KEY_OF_0_3 = 'bff:1:idempotency:_NLEp-DtDfCXZ1yhGsFprdWwawSbzV7xyYFrlCquCOI'
const RECORDS_OF_0_3 = {
  answered:
    'v1.XfA94vWR.OC2QFIEo2H4ZKFcbqNme0n-7_SfLfftjlCQdLtPauWG9-HjUBDtLFZGfNKLFVe3h4bOmlUd7fInlzTe-crG2rMbTTmlIqIvIAAj5MueBzmPjEs1ZOHIJ_yOWwitm3pf8IOy6noCargky0JTPxyHCJKUe0-Cp_01Gu4zkZDqLVblv2zGNLon9qmluseIpCgMepOZ1JWM54hFPIzte_qXWAbCSg054EB3p9nqbE8Q_phwBUoFu8-tm321DcayzPVuzvdkUOA_PBD4Zn3lpS9JN-pusqAyh7LLyLA',
  running:
    'v1.XfA94vWR.FNW4ycXWwLuuSYZLh_LkjIjh65SVeL40Bc-gn2fgwf_WbUPJUciLYZyvLYoJrOhf2OEBHc16z6QcJpnFjGIA0bP8YdtrE2wKtriyLEavUM8px3jlcrBAiOTbSxZ3v-DkHavY2sHP7yhZMPdg56H4d6bn_7HD0q8hh1PxpicZ',
  not_kept:
    'v1.XfA94vWR.y7_F58oUmrECM5YMY7z_JnArG3szd8cpUD16HbtDD3wAUmN6lBnc2e3bur8IXL2h7Q7LI_NaVjoU_QwiU4ODRlOmCa0PpjnyDwLAPdA1bwkPM1Vq1QM6ZJ2WeSeXnxZ43ONrNipU4oAwuZnT5USaMc4',
  unknown:
    'v1.XfA94vWR.FZ_H4_gMGtrgGlF32sWDgmrP0zyJlxj_cmB_GdoKVANR2CHjXkGKQd-Z6D2l6YTuo904zP1hNPb8ccv-UQZ-oZBmiBKH2c5GbhjOlcN6d4FFKUXNXN9WRcWKnRPkdDXNqPfb',
} as const

await test('This version reads the records of version 0.3, whichever form it writes, and writes what version 0.3 reads', async (t) => {
  const place = { recordKey: idempotencyKey('id', 'key'), sessionId: 'id' }
  t.equal(place.recordKey, RECORD_KEY_OF_0_3)
  const old = new Envelope(new Changeable([SECRET_OF_0_3]))
  const headers = { 'content-type': 'application/json', etag: '"1"', 'content-length': '8' }
  const answer = { status: 201, headers, body: Buffer.from('{"id":1}') }
  for (const isCompact of [false, true]) {
    const store = new MemoryStore()
    const session = { ...(await sessionIn(store)), id: 'id' }
    const records = new IdempotencyRecords(store, old, { ...LIMITS, isCompact })
    const claim = async (is: keyof typeof RECORDS_OF_0_3, digest = DIGEST) => {
      await store.remove(place.recordKey)
      await store.create(place.recordKey, RECORDS_OF_0_3[is], Date.now() + 60_000)
      return records.claim(session, 'key', digest)
    }
    t.same(await claim('answered'), { is: 'answered', answer })
    t.same(await claim('running'), { is: 'running' })
    t.same(await claim('not_kept'), { is: 'not_kept', status: 202 })
    t.same(await claim('unknown'), { is: 'unknown' })
    t.same(await claim('answered', digestOf('POST', '/other', null)), { is: 'otherCall' })
  }

  const json = new SealedRecords(old, false)
  for (const [is, recorded] of Object.entries(RECORDS_OF_0_3)) {
    const ours = json.open(place, recorded)
    if (ours === undefined) throw new Error(is)
    const parsed = (text: string): unknown => JSON.parse(old.open(place.recordKey, place.sessionId, text) ?? '')
    t.same(parsed(json.seal(place, ours)), parsed(recorded), `${is}: version 0.3 reads it`)
  }
})

/** Compact records of the same session, key and call, as this form was first written. In base64. */
const COMPACT_RECORDS: readonly (readonly [text: string, expected: object])[] = [
  [
    'Av0UHac_hOdTpfFuG1e7k4MbmLUeBrPUhVWLITbS0XveGKDUccWHrJD5_T6XU5Wv-XE',
    { is: 'answered', status: 201, headers: { 'content-type': 'application/json', 'content-length': '8' } },
  ],
  [
    'AhXXJCDAIQBNUePxo4t_Il9iOBUp_tL7mYw4_mfKTsLP4jy3YFTpu3IVu8RnHvIT7EE',
    { is: 'answered', headers: { 'content-type': 'application/json; charset=utf-8', 'content-length': '8' } },
  ],
  [
    'AkOS2s_b2P3yBS0qelWJ3j5fgo28_ul_nEvvMRcd6_6h6jYkBj1pC_JXOVEDCe4AJRwdpZDYBxMeenKg4o7r8tpINEVL6gIeBD3HGq-i8x1pTfODa7zdKpbKGrglG-xJKlBqq8BgW29hHLfpt5GFvG4moaTDrkMh5RsjMn4',
    { is: 'answered', headers: { 'content-type': 'application/json', etag: '"1"', 'content-length': '8' } },
  ],
  ['AkwbXXwekBim20y1H2SZOPHOMvT3jk0YKmN4MIKKBE7RSIf9r6_EpRA_UZJ5HoA', { is: 'running', leaseUntil: 4102444800000 }],
  ['AhZMq48bAN8IJQ41IQqd5rpxSuRjGNBIkwJxeoiIXna3Z9MBprSjN4I', { is: 'not_kept', status: 202 }],
  ['Ap4_2PHG7vwOqH2Gw1KNuT4NT7-Quc9JxYAYHyTISeV4omYXpy3c', { is: 'unknown' }],
]

await test('Compact records stay readable', async (t) => {
  const sealed = new SealedRecords(new Envelope(new Changeable([SECRET_OF_0_3])), false)
  for (const [text, expected] of COMPACT_RECORDS) {
    const bytes = Buffer.from(text, 'base64url').toString('latin1')
    const opened = sealed.open({ recordKey: RECORD_KEY_OF_0_3, sessionId: 'id' }, bytes)
    t.match(opened, expected)
    t.equal(opened?.digest, DIGEST.slice(0, 12))
    if (opened?.is === 'answered') t.equal(opened.body.toString(), '{"id":1}')
  }
})
