import { EventEmitter } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import { ErrorReply } from '@redis/client'
import { test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import type { RedisAccess } from '../../src/config/redis-address.ts'
import { LiveCredentials } from '../../src/store/links/live-credentials.ts'

const as = (password: string): string => `redis://user:${password}@host`
const accessOf = (password: string): RedisAccess => ({ username: 'user', password, tls: false })
const WRONG = new ErrorReply('WRONGPASS invalid')

/** A connection that is authenticated as a test says. */
class Wire extends EventEmitter {
  isReady = true
  readonly given: string[] = []
  answer: (access: RedisAccess) => Promise<void> = async () => undefined

  async authenticate(access: RedisAccess): Promise<void> {
    this.given.push(access.password ?? '')
    await this.answer(access)
  }
}

/** Credentials that change, what is refused, and connections that follow them. */
function liveOf() {
  const url = new Changeable(as('first'))
  const refused: unknown[][] = []
  const live = new LiveCredentials(url, (...args) => void refused.push(args))
  const open = (server = 'one') => {
    const { credentials, attend, type } = live.forConnection(server)
    const wire = new Wire()
    attend(wire)
    return { wire, credentials, type }
  }
  const change = (password: string): void => url.change(as(password))
  return { live, change, open, refused }
}

await test('a connection opens with the present credentials, and goes on with each that come', async (t) => {
  const { live, change, open, refused } = liveOf()
  t.equal(live.type, 'async-credentials-provider')
  t.same([live.access, live.former, await live.credentials()], [accessOf('first'), undefined, accessOf('first')])
  const { wire, credentials, type } = open()
  t.equal(type, 'async-credentials-provider')
  t.same(await credentials(), accessOf('first'))
  wire.emit('ready')
  change('second')
  t.same([live.access, live.former], [accessOf('second'), accessOf('first')])
  change('third')
  await turn()
  t.same(wire.given, ['second', 'third'])
  t.same(live.former, accessOf('second'))
  t.same(refused, [])
})

await test('credentials that change while a connection opens are given once it is open', async (t) => {
  const { change, open } = liveOf()
  const { wire, credentials } = open()
  await credentials()
  change('second')
  await turn()
  t.same(wire.given, [], 'it is not open yet')
  wire.emit('ready')
  await turn()
  t.same(wire.given, ['second'])
})

await test('of credentials that change while others are given only the latest follow', async (t) => {
  const { change, open } = liveOf()
  const { wire, credentials } = open()
  await credentials()
  wire.emit('ready')
  const first = Promise.withResolvers<undefined>()
  wire.answer = () => first.promise
  change('second')
  change('third')
  change('fourth')
  t.same(wire.given, ['second'], 'one at a time')
  wire.answer = async () => undefined
  first.resolve(undefined)
  await turn()
  t.same(wire.given, ['second', 'fourth'])
})

await test('a connection that is over, or failed, follows no more, and one that is ready again does so once', async (t) => {
  const { change, open } = liveOf()
  const { wire, credentials } = open()
  await credentials()
  for (const [index, event] of ['end', 'error'].entries()) {
    wire.given.length = 0
    wire.emit('ready')
    wire.emit('ready')
    change(`a${index}`)
    await turn()
    t.same(wire.given, [`a${index}`])
    wire.emit(event, new Error('reset'))
    change(`b${index}`)
    await turn()
    t.same(wire.given, [`a${index}`])
    await credentials()
  }
  wire.emit('ready')
  wire.isReady = false
  wire.given.length = 0
  change('last')
  await turn()
  t.same(wire.given, [], 'it is about to close')
})

await test('an open connection that refuses new credentials is told, and goes on', async (t) => {
  const { change, open, refused } = liveOf()
  const { wire, credentials } = open()
  await credentials()
  wire.emit('ready')
  wire.answer = () => Promise.reject(WRONG)
  change('second')
  await turn()
  t.same(refused, [[WRONG, 'one']])
  wire.answer = async () => undefined
  change('third')
  await turn()
  t.same([wire.given, refused.length], [['second', 'third'], 1])
})

await test('after a server has refused new credentials the former ones and the new ones take turns, until one serves', async (t) => {
  for (const code of ['WRONGPASS invalid', 'NOAUTH first']) {
    const { change, open, refused } = liveOf()
    change('second')
    const passwords: (string | undefined)[] = []
    const tryOnce = async (server: string): Promise<Wire> => {
      const { wire, credentials } = open(server)
      passwords.push((await credentials()).password)
      return wire
    }
    const refusal = new ErrorReply(code)
    for (let count = 0; count < 4; count++) (await tryOnce('one')).emit('error', refusal)
    t.same(passwords.splice(0), ['second', 'first', 'second', 'second'], code)
    t.same(refused, [[refusal, 'one']], 'which is told once')
    ;(await tryOnce('other')).emit('end')
    t.same(passwords.splice(0), ['second'], 'another server has refused nothing')
    const wire = await tryOnce('one')
    wire.emit('ready')
    wire.emit('error', refusal)
    await tryOnce('one')
    t.same(passwords, ['second', 'first'], 'a server that took them may refuse them later')
    change('third')
    passwords.length = 0
    await tryOnce('one')
    t.same(passwords, ['third'], 'newer ones have not been refused')
  }
})

await test('only a refusal of credentials brings the former ones back', async (t) => {
  const { change, open, refused } = liveOf()
  const fail = async (error: unknown): Promise<string | undefined> => {
    const { wire, credentials } = open()
    await credentials()
    wire.emit('error', error)
    return (await open().credentials()).password
  }
  t.equal(await fail(WRONG), 'first', 'there are no former ones')
  change('second')
  t.equal(await fail(new ErrorReply('LOADING wait')), 'second')
  t.equal(await fail(new ErrorReply('ERR WRONGPASS no')), 'second')
  t.equal(await fail(new Error('WRONGPASS no')), 'second')
  t.same(refused, [])
  t.equal(await fail(WRONG), 'first')
})
