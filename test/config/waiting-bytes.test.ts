import { test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { ALONE } from '../support/server/settings.ts'

const GIB = 2 ** 30
const REDIS_URL = 'redis://127.0.0.1'
const waitingBytes = (settings: Record<string, string> = {}): number =>
  readConfig({ ...ALONE, REDIS_URL, ...settings }).relay.maxWaitingBytes
const aboutWaiting = (settings: Record<string, string>): string[] =>
  readConfig({ ...ALONE, REDIS_URL, ...settings }).warnings.filter((each) => each.startsWith('MAX_WAITING_BYTES'))

await test('MAX_WAITING_BYTES is a quarter of the memory of the container, which all workers share', (t) => {
  let memory = GIB
  t.intercept(process, 'constrainedMemory', { value: () => memory })
  t.equal(waitingBytes(), GIB / 4)
  t.equal(waitingBytes({ WORKERS: '4' }), GIB / 16)
  t.equal(waitingBytes({ WORKERS: '4', MAX_WAITING_BYTES: '300000000' }), 300_000_000)
  // What Node says where there is no control group, and where it has no limit: the greatest number, or that of version 1.
  for (memory of [0, 2 ** 64, 9_223_372_036_854_771_712]) {
    t.equal(waitingBytes(), GIB / 4)
    t.equal(waitingBytes({ WORKERS: '4' }), GIB / 4)
  }
  t.end()
})

await test('a MAX_WAITING_BYTES that takes more than half of the memory of the container is warned about', (t) => {
  let memory = GIB
  t.intercept(process, 'constrainedMemory', { value: () => memory })
  t.same(aboutWaiting({}), [])
  t.same(aboutWaiting({ WORKERS: '16' }), [])
  t.same(aboutWaiting({ MAX_WAITING_BYTES: String(GIB / 2) }), [])
  t.same(aboutWaiting({ MAX_WAITING_BYTES: String(GIB / 2 + 1) }).length, 1)
  t.match(aboutWaiting({ MAX_WAITING_BYTES: String(GIB / 4), WORKERS: '3' }), [
    /in each of 3 workers .* 1073741824 bytes/,
  ])
  memory = 0
  t.same(aboutWaiting({ MAX_WAITING_BYTES: String(GIB) }), [], 'without a limit nothing is known')
  t.end()
})
