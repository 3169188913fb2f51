import { test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { wrongOnes } from '../support/config/wrong-settings.ts'
import { ALONE } from '../support/server/settings.ts'

const SHARED = { ...ALONE, PUBLIC_FEED: 'shared' }

await test('limits of the shared feed that are impossible are named, whether it is on or off', (t) => {
  const limits = {
    FEED_CACHE_SECONDS: '-1',
    FEED_CONFLATE_BYTES: '1023',
    FEED_LINGER_SECONDS: '3601',
    FEED_MAX_OWN_SOCKETS: '-1',
    FEED_MAX_SOCKETS: '0',
    FEED_RECONNECT_SPREAD_SECONDS: '601',
    FEED_REQUESTS_PER_MINUTE: '0',
    FEED_SUBSCRIPTIONS: '0',
    FEED_SUBSCRIPTIONS_PER_SOCKET: '0',
  }
  t.same(wrongOnes({ ...SHARED, ...limits }), Object.keys(limits))
  t.same(wrongOnes({ ...ALONE, PUBLIC_FEED: 'sharing', ...limits }), [...Object.keys(limits), 'PUBLIC_FEED'])
  t.end()
})

await test('limits of the shared feed must fit each other, while it is on', (t) => {
  const bytes = { FEED_CONFLATE_BYTES: '32768', MAX_BUFFERED_BYTES: '32768' }
  t.same(wrongOnes({ ...SHARED, ...bytes }), ['FEED_CONFLATE_BYTES'], 'slow browsers would be cut off too early')
  t.same(wrongOnes({ ...SHARED, ...bytes, MAX_BUFFERED_BYTES: '32769' }), [])
  const places = { FEED_MAX_SOCKETS: '3', FEED_SUBSCRIPTIONS_PER_SOCKET: '33', FEED_SUBSCRIPTIONS: '100' }
  t.same(wrongOnes({ ...SHARED, ...places }), ['FEED_SUBSCRIPTIONS'], 'more than all browsers have together')
  t.same(wrongOnes({ ...SHARED, ...places, FEED_SUBSCRIPTIONS: '99' }), [])
  t.same(wrongOnes({ ...ALONE, ...bytes, ...places }), [])
  t.end()
})

await test('limits of the shared feed need not fit one that is wrong by itself', (t) => {
  for (const [wrong, others] of [
    [{ FEED_MAX_SOCKETS: '0' }, { FEED_SUBSCRIPTIONS: '101' }],
    [{ FEED_SUBSCRIPTIONS_PER_SOCKET: '0' }, { FEED_SUBSCRIPTIONS: '101' }],
    [{ MAX_BUFFERED_BYTES: '0' }, { FEED_CONFLATE_BYTES: '1024' }],
    [{ FEED_SUBSCRIPTIONS: '10001' }, {}],
    [{ FEED_CONFLATE_BYTES: '1' }, {}],
  ]) {
    t.same(wrongOnes({ ...SHARED, ...wrong, ...others }), Object.keys(wrong ?? {}))
  }
  t.end()
})

await test('the defaults of the shared feed give way to limits that are lower', (t) => {
  const low = { FEED_MAX_SOCKETS: '3', FEED_SUBSCRIPTIONS_PER_SOCKET: '33', MAX_BUFFERED_BYTES: '65536' }
  t.match(readConfig({ ...SHARED, ...low }).feed, { maxSubscriptions: 99, conflateBytes: 32_768 })
  const exact = { FEED_MAX_SOCKETS: '2', FEED_SUBSCRIPTIONS_PER_SOCKET: '50', MAX_BUFFERED_BYTES: '65537' }
  t.match(readConfig({ ...SHARED, ...exact }).feed, { maxSubscriptions: 100, conflateBytes: 65_536 })
  t.end()
})

await test('the settings of the shared feed are read in milliseconds', (t) => {
  t.equal(readConfig(ALONE).feed.isShared, false)
  const settings = {
    FEED_CACHE_SECONDS: '1',
    FEED_SUBSCRIPTIONS: '6',
    FEED_REQUESTS_PER_MINUTE: '3',
    FEED_MAX_OWN_SOCKETS: '0',
    FEED_SUBSCRIPTIONS_PER_SOCKET: '2',
    FEED_MAX_SOCKETS: '4',
    FEED_LINGER_SECONDS: '5',
    FEED_CONFLATE_BYTES: '1048575',
    FEED_RECONNECT_SPREAD_SECONDS: '7',
  }
  t.same(readConfig({ ...SHARED, ...settings }).feed, {
    isShared: true,
    cacheMs: 1000,
    maxSubscriptions: 6,
    requestsPerMinute: 3,
    maxOwnSockets: 0,
    subscriptionsPerSocket: 2,
    maxSockets: 4,
    lingerMs: 5000,
    conflateBytes: 1_048_575,
    reconnectSpreadMs: 7000,
  })
  t.end()
})
