import { test } from 'tap'
import {
  areFinal,
  areManyRefused,
  codeLabel,
  hasGrantedOthers,
  limitedOnce,
  LOGIN,
  NO_NEWS,
  noteGrant,
  noteRefused,
  pruned,
  refusedOnce,
  type ProviderNews,
  type Refusals,
} from '../../src/sessions/refusals.ts'
import { AT_ONCE, NEVER } from '../support/login/refusal-codes.ts'

const NOW = 1_800_000_000_000
const SECOND = 1000

/** A session that was refused with these codes, one every 30 seconds. */
function refused(...codes: readonly string[]): Refusals {
  let record: Refusals | undefined
  for (const [index, code] of codes.entries()) record = refusedOnce(record, code, NOW + index * 30 * SECOND)
  return record ?? limitedOnce(undefined, NOW, 0)
}

/** What a gateway that refuses users in turn, one a second, leaves behind. */
function refusedUsers(code: string, users: readonly string[]): ProviderNews {
  return users.reduce((news, user, index) => noteRefused(news, code, user, NOW + index * SECOND), NO_NEWS)
}

const LASTING = ['policy_violation', 'mfa_required', 'an unreadable error']

await test('each code ends a session at once, after three refusals in a minute or more, or never', async (t) => {
  for (const code of AT_ONCE)
    t.same(
      [1, 2].map((count) => areFinal(refused(...Array<string>(count).fill(code)))),
      [true, true],
    )
  for (const code of NEVER) t.notOk(areFinal(refused(...Array<string>(50).fill(code))), code)
  for (const code of LASTING) {
    const final = [1, 2, 3, 4].map((count) => areFinal(refused(...Array<string>(count).fill(code))))
    t.same(final, [false, false, true, true], code)
  }
  const hasty = [0, 1, 59_999].reduce<Refusals | undefined>(
    (record, ms) => refusedOnce(record, 'odd', NOW + ms),
    undefined,
  )
  t.notOk(hasty && areFinal(hasty), 'three refusals within a minute do not count as lasting')
  t.notOk(areFinal(refused('login_required', 'invalid_request')), 'the last code decides')
  t.same(AT_ONCE.map(codeLabel), AT_ONCE)
  t.same(LASTING.map(codeLabel), ['other', 'other', 'other'])
})

await test('a session is tried again 30 seconds after a refusal, and as late as a 429 says', async (t) => {
  const once = refusedOnce(undefined, 'access_denied', NOW)
  t.same(once, { first: NOW, last: NOW, count: 1, code: 'access_denied', next: NOW + 30 * SECOND })
  const limited = limitedOnce(once, NOW + 5 * SECOND, 60 * SECOND)
  t.same(limited, { ...once, next: NOW + 65 * SECOND }, 'a 429 is no refusal')
  t.match(refusedOnce(limitedOnce(undefined, NOW, SECOND), 'odd', NOW + SECOND), { first: NOW + SECOND, count: 1 })
})

await test('a grant to another user, or any login, proves that the provider works; a grant to the user does not', async (t) => {
  t.notOk(hasGrantedOthers(NO_NEWS, 'alice', NOW))
  const own = noteGrant(NO_NEWS, 'alice', NOW + 1)
  t.notOk(hasGrantedOthers(own, 'alice', NOW))
  t.ok(hasGrantedOthers(own, 'bob', NOW))
  t.notOk(hasGrantedOthers(own, 'bob', NOW + 1), 'what was asked for before the refusal proves nothing')
  t.ok(hasGrantedOthers(noteGrant(own, LOGIN, NOW + 2), 'alice', NOW))
  let news = noteGrant(NO_NEWS, 'bob', NOW + 1)
  for (let ms = 2; ms < 50; ms++) news = noteGrant(news, ms % 2 === 0 ? 'alice' : 'carol', NOW + ms)
  t.equal(news.granted.length, 2)
  for (const user of ['alice', 'bob', 'carol']) t.ok(hasGrantedOthers(news, user, NOW + 40), user)
  t.notOk(hasGrantedOthers(noteGrant(news, 'bob', NOW + 3), 'alice', NOW + 49), 'late news are not taken for new ones')
})

await test('three users who are refused with one code within a minute are many; one user, or three codes, are not', async (t) => {
  t.notOk(areManyRefused(refusedUsers('odd', ['alice', 'bob', 'alice', 'bob', 'alice']), 'odd'))
  const many = refusedUsers('odd', ['alice', 'bob', 'carol'])
  t.ok(areManyRefused(many, 'odd'))
  t.notOk(areManyRefused(many, 'other'))
  t.ok(areManyRefused(pruned(many, NOW + 59 * SECOND), 'odd'))
  t.notOk(areManyRefused(pruned(many, NOW + 61 * SECOND), 'odd'))
  t.equal(
    noteRefused(many, 'odd', 'dave', NOW + 5 * SECOND),
    many,
    'ten thousand who are refused write no more than three',
  )
  t.not(noteRefused(many, 'odd', 'dave', NOW + 40 * SECOND), many)
})

await test('times of a clock that was ahead count for nothing', async (t) => {
  const ahead = noteRefused(noteGrant(NO_NEWS, 'bob', NOW + 9), 'odd', 'bob', NOW + 9)
  t.same(pruned(ahead, NOW), NO_NEWS)
})

await test('what is remembered counts to the very moment, and for one user and one code', (t) => {
  t.equal(codeLabel('invalid_grant'), 'invalid_grant')
  t.equal(LOGIN, 'login', 'other versions write it, too')
  t.same(limitedOnce(undefined, NOW, SECOND), { first: 0, last: 0, count: 0, code: '', next: NOW + SECOND })
  const late = refusedOnce(refusedOnce(undefined, 'odd', NOW), 'odd', NOW + 120 * SECOND)
  t.equal(areFinal(late), false, 'two refusals are not lasting')
  const news = noteRefused(noteGrant(NO_NEWS, 'bob', NOW), 'odd', 'alice', NOW)
  t.same(pruned(news, NOW), news)
  t.same(pruned(news, NOW + 60 * SECOND).refused, [])
  t.same(pruned(news, NOW + 59 * SECOND), news)
  const many = refusedUsers('odd', ['alice', 'bob', 'carol'])
  t.ok(areManyRefused(noteRefused(many, 'other', 'carol', NOW + 5 * SECOND), 'odd'), 'one user, two codes')
  t.not(noteRefused(many, 'other', 'dave', NOW + 5 * SECOND), many, 'many with another code')
  t.not(noteRefused(many, 'odd', 'dave', NOW + 30 * SECOND), many, 'the first is half a minute ago')
  const users = Array.from({ length: 60 }, (_each, at) => `user ${at}`)
  const all = users.reduce((before, user) => noteRefused(before, user, user, NOW), NO_NEWS)
  t.same(
    all.refused.map(([, user]) => user),
    users.slice(10),
  )
  t.end()
})
