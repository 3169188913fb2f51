import { syncBuiltinESMExports } from 'node:module'
import promises from 'node:timers/promises'
import { ErrorReply } from '@redis/client'
import { test } from 'tap'
import { replace } from '../support/time/replace.ts'
import { Changeable } from '../../src/config/changing.ts'
import { LiveCredentials } from '../../src/store/links/live-credentials.ts'
import {
  delay,
  errorCode,
  mayLackDatabase,
  nodeOptions,
  reasonOf,
  replyCode,
} from '../../src/store/links/redis-link.ts'

await test('the code of an error is its first word, in capitals', (t) => {
  t.same(['OOM command not allowed', 'LOADING', 'Oops no', 'an OOM', 'OOM2 x', ''].map(errorCode), [
    'OOM',
    'LOADING',
    undefined,
    undefined,
    undefined,
    undefined,
  ])
  t.equal(replyCode(new ErrorReply('NOPERM no')), 'NOPERM')
  t.equal(replyCode(new Error('NOPERM no')), undefined)
  t.end()
})

await test('a connection may have failed for want of its database where REDIS_URL names one beside 0', (t) => {
  const error = new ErrorReply('ERR DB index is out of range')
  for (const [path, may] of [
    ['/1', true],
    ['/10', true],
    ['/0', false],
    ['/', false],
    ['', false],
  ] as const) {
    t.equal(mayLackDatabase(error, { url: `redis://host${path}` }), may, path)
  }
  t.equal(mayLackDatabase(error, {}), false)
  t.equal(mayLackDatabase(new ErrorReply('NOAUTH no'), { url: 'redis://host/1' }), false)
  t.end()
})

await test('the reason of a failure is its code, or else its text, or its name', (t) => {
  class Odd extends Error {
    override readonly name = 'Odd'
  }
  const options = { url: 'redis://host/1' }
  t.equal(
    reasonOf(new ErrorReply('ERR out of range'), options),
    'ERR: the database at the end of REDIS_URL may not exist',
  )
  t.equal(reasonOf(new ErrorReply('ERR out of range')), 'ERR')
  t.equal(reasonOf(Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })), 'ECONNREFUSED')
  t.equal(reasonOf(new Error('it is a slave')), 'it is a slave')
  t.equal(reasonOf(new Odd('text')), 'Odd')
  t.end()
})

const live = (scheme: string) => new LiveCredentials(new Changeable(`${scheme}://u:p@a`), () => undefined)

await test('one of several servers is reached at its host, as the others are', (t) => {
  const node = { host: 'a', port: 7 }
  t.same(nodeOptions(node, { username: 'u', password: 'p', tls: true }), {
    username: 'u',
    password: 'p',
    socket: { host: 'a', port: 7, tls: true },
  })
  t.same(nodeOptions(node, { tls: false }), { socket: { host: 'a', port: 7 } })
  const [plain, secure] = [live('redis'), live('rediss')]
  t.equal(nodeOptions(node, plain).credentialsProvider, plain)
  t.same(Object.keys(nodeOptions(node, plain)), ['socket', 'credentialsProvider'], 'they are asked for each time')
  t.same(nodeOptions(node, plain).socket, { host: 'a', port: 7 })
  t.same(nodeOptions(node, secure).socket, { host: 'a', port: 7, tls: true })
  t.end()
})

await test('a pause lasts as long as asked, and keeps no process alive', async (t) => {
  const asked: unknown[] = []
  // Those who have imported it get the new one.
  t.teardown(syncBuiltinESMExports)
  replace(t, promises, 'setTimeout', async (...args: unknown[]) => void asked.push(args))
  syncBuiltinESMExports()
  await delay(20)
  t.same(asked, [[20, undefined, { ref: false }]])
})
