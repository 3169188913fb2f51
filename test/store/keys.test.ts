import { createHmac } from 'node:crypto'
import { test } from 'tap'
import * as keys from '../../src/store/keys.ts'

const AN_ID = 'E6SHhJNbgQ-bZs-4uoiNFg_hzoaWZcqihwUaey_kM5c'
const mac = (secret: string, text: string): string => createHmac('sha256', secret).update(text).digest('base64url')

await test('instances of several versions find the same things under the same keys', (t) => {
  const session = keys.sessionKey('an-id')
  t.equal(session, `bff:1:session:${AN_ID}`)
  t.same(
    [
      keys.loginKey('state', 'secret'),
      keys.besideKey(session, 'tombstone'),
      keys.partKey(session, 'refresh'),
      keys.REFRESHES_KEY,
      keys.subjectKey('user', 'secret'),
      keys.providerSessionKey('name', 'secret'),
      keys.LOGOUT_SENDERS_KEY,
      keys.startsKey('192.0.2.0/24'),
      keys.sharedResponseKey('/instruments?limit=2'),
      keys.budgetKey('budget', 'default'),
      keys.CONTROLS_KEY,
      keys.CONTROLLED_KEY,
      keys.idempotencyKey('an-id', 'key'),
      keys.FINGERPRINT_KEY,
      keys.probeKey('one'),
      keys.ENDED_CHANNEL,
    ],
    [
      'bff:1:login:P_DPh0KHHNe9K-H8kLyscVApCZz-9eMvPoRkmk6Kz-U',
      `{bff:1:session:${AN_ID}}:tombstone`,
      `bff:1:session:${AN_ID}:refresh`,
      'bff:1:refreshes',
      `bff:1:subject:${mac('secret', 'sessions of user')}`,
      `bff:1:provider-session:${mac('secret', 'sessions of sid name')}`,
      'bff:1:logout-senders',
      'bff:1:starts:192.0.2.0/24',
      'bff:1:response:/instruments?limit=2',
      'bff:1:budget:default',
      'bff:1:controls',
      'bff:1:controlled',
      'bff:1:idempotency:nQMmTlVMkx-XPOAl2ZDt49RbKS3vTyTMI8RKCFHOhqU',
      'bff:1:fingerprint-key',
      'bff:1:probe:one',
      'bff:1:ended',
    ],
  )
  t.equal(keys.refusedName('user', 'secret'), mac('secret', 'refused user').slice(0, 16))
  t.end()
})

await test('the prefix and the length of session keys are those of no other key', (t) => {
  const { prefix, length } = keys.SESSION_KEYS
  const isSession = (key: string): boolean => key.startsWith(prefix) && key.length === length
  const session = keys.sessionKey('an-id')
  t.ok(isSession(session))
  for (const other of [
    keys.besideKey(session, 'left'),
    keys.partKey(session, 'keys'),
    keys.subjectKey('user', 'secret'),
    keys.loginKey('state', 'secret'),
  ]) {
    t.notOk(isSession(other), other)
  }
  t.end()
})
