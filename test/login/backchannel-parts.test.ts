import type { FastifyReply, FastifyRequest } from 'fastify'
import { test } from 'tap'
import { BackchannelLogout } from '../../src/login/backchannel-logout.ts'
import { nameOf } from '../../src/oauth/login-identity.ts'
import { Problem } from '../../src/problem.ts'
import { StoreUnavailable } from '../../src/store/store.ts'

const ISSUER = 'https://issuer.test'
const EVENTS = { 'http://schemas.openid.net/event/backchannel-logout': {} }
const FORM = 'application/x-www-form-urlencoded'
const AWAY = new StoreUnavailable('away')

/** A logout token of half a minute ago, with these claims besides. */
function tokenOf(claims: object = {}, header: object = {}): string {
  const iat = Math.floor(Date.now() / 1000)
  const all = { iss: ISSUER, aud: 'client', iat, events: EVENTS, sub: 'ada', ...claims }
  const parts = [{ alg: 'RS256', typ: 'logout+jwt', ...header }, all]
  return [...parts.map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')), 'signature'].join('.')
}

const bodyOf = (...tokens: readonly string[]): Buffer =>
  Buffer.from(tokens.map((token) => `logout_token=${token}`).join('&'))

/** The logouts of a provider whose parts a test plays, from an address of its own. */
function logouts(ip: string) {
  const world = {
    isOver: false,
    signature: { is: 'valid' } as unknown,
    end: async (): Promise<number> => 3,
    noteValid: async (): Promise<void> => undefined,
  }
  const [calls, lines, counted]: [unknown[][], unknown[][], string[]] = [[], [], []]
  const note = (...call: unknown[]): void => void calls.push(call)
  const parts = {
    config: { issuer: ISSUER, clientId: 'client' },
    openId: {
      keys: { check: async (...args: unknown[]) => (note('check', ...args), world.signature) },
      metrics: { logouts: { inc: ({ outcome }: { outcome: string }) => counted.push(outcome) } },
    },
    logouts: { end: (...args: unknown[]) => (note('end', ...args), world.end()) },
    senders: {
      isOver: () => world.isOver,
      countFalse: (address: string) => note('false', address),
      check: async (address: string, check: () => Promise<unknown>) => (note('sender', address), check()),
      noteValid: (address: string) => (note('note', address), world.noteValid()),
    },
    sessions: { subjectTag: (subject?: string) => subject && `tag of ${subject}` },
  }
  const log = Object.fromEntries(
    ['info', 'warn', 'error', 'debug'].map((level) => [level, (...args: unknown[]) => lines.push([level, ...args])]),
  )
  const request = (contentType = FORM): FastifyRequest => {
    const routeOptions = { url: '/auth/backchannel-logout' }
    const headers = { 'content-type': contentType }
    return { ip, id: 'request', method: 'POST', raw: {}, routeOptions, headers, log } as unknown as FastifyRequest
  }
  const logout = new BackchannelLogout(parts as unknown as ConstructorParameters<typeof BackchannelLogout>[0])
  return { logout, world, calls, lines, counted, request, end: (body?: Buffer) => logout.end(request(), body) }
}

await test('a logout ends what its token names, is counted, and makes its sender known', async (t) => {
  const { calls, lines, counted, end } = logouts('192.0.2.10')
  const token = tokenOf({ sid: 's1' })
  await end(bodyOf(token))
  const read = { subject: nameOf(ISSUER, 'ada'), sid: nameOf(ISSUER, 's1') }
  t.match(calls, [
    ['sender', '192.0.2.10'],
    ['check', token, 'logout'],
    ['end', read, { reqId: 'request', client: '192.0.2.10' }],
    ['note', '192.0.2.10'],
  ])
  const subject = `tag of ${read.subject}`
  t.match(lines, [['info', { audit: 'provider_logout', client: '192.0.2.10', subject, ended: 3 }]])
  t.same(counted, ['ended'])
})

await test('a sender that could not be noted has its logout all the same, and the answer waits for the note', async (t) => {
  const { world, counted, end } = logouts('192.0.2.11')
  world.noteValid = () => Promise.reject(AWAY)
  await end(bodyOf(tokenOf()))
  t.same(counted, ['ended'])
  const gate = Promise.withResolvers<void>()
  world.noteValid = () => gate.promise
  let isOver = false
  const ended = end(bodyOf(tokenOf())).finally(() => (isOver = true))
  await new Promise((resolve) => setImmediate(resolve))
  t.equal(isOver, false)
  gate.resolve()
  await ended
})

await test('without the store the provider may send its token again; any other fault is thrown and not counted as that', async (t) => {
  const { world, counted, calls, lines, end } = logouts('192.0.2.12')
  world.end = () => Promise.reject(AWAY)
  await t.rejects(end(bodyOf(tokenOf())), AWAY)
  t.same(counted, ['store_away'])
  world.end = () => Promise.reject(new TypeError('planted'))
  await t.rejects(end(bodyOf(tokenOf())), /planted/)
  t.same(counted, ['store_away'])
  t.notOk(calls.some(([what]) => what === 'note'))
  t.same(lines, [])
})

await test('a request over the limit, or that is no form, is refused before its body is read', (t) => {
  const { logout, world, request, counted, calls } = logouts('192.0.2.13')
  for (const type of [FORM, `${FORM};charset=utf-8`, `${FORM} ; x`, FORM.toUpperCase()]) logout.admit(request(type))
  t.same([counted, calls], [[], []])
  const others = ['application/json', `${FORM}x`, `x${FORM}`, '']
  for (const type of others) t.throws(() => logout.admit(request(type)), { code: 'bad_request' }, type)
  t.same(
    counted,
    others.map(() => 'false'),
  )
  t.same(
    calls,
    others.map(() => ['false', '192.0.2.13']),
  )
  world.isOver = true
  t.throws(() => logout.admit(request()), { code: 'rate_limited', details: { retryAfterSeconds: 1 } })
  t.equal(counted.at(-1), 'limited')
  t.end()
})

await test('a body without exactly one token, and a false token, count against their sender, and no signature is checked', async (t) => {
  const { calls, lines, counted, end } = logouts('192.0.2.14')
  for (const [body, detail, fault] of [
    [undefined, /exactly one logout_token/, 'form'],
    [bodyOf(), /exactly one logout_token/, 'form'],
    [bodyOf(tokenOf(), tokenOf()), /exactly one logout_token/, 'form'],
    [bodyOf('no.token'), /not a signed JWT/, 'shape'],
    [bodyOf(tokenOf({ iss: 'another' })), /another issuer/, 'issuer'],
  ] as const) {
    calls.length = 0
    const problem = { code: 'bad_request', details: { detail, oauthError: 'invalid_request' } }
    await t.rejects(end(body), problem, fault)
    t.same(calls, [['false', '192.0.2.14']])
    if (body !== undefined || lines.length === 1) {
      t.match(lines.at(-1)?.[1], { audit: 'provider_logout_refused', fault, client: '192.0.2.14' })
    }
  }
  t.same(
    counted,
    Array.from({ length: 5 }, () => 'false'),
  )
  t.notOk(lines.some(([, fields]) => 'age' in Object(fields)))
})

await test('the answer tells the operator of the provider which part of a token is wrong', async (t) => {
  const { end } = logouts('192.0.2.17')
  for (const [token, detail] of [
    [tokenOf({}, { alg: 'none' }), /not signed with the private key of an accepted algorithm/],
    [tokenOf({ aud: 'another' }), /for another client/],
    [tokenOf({}, { typ: 'at+jwt' }), /typ of the logout token is neither logout\+jwt nor JWT/],
    [tokenOf({ iat: 1 }), /iat of the logout token is missing, in the future, or too long ago/],
    [tokenOf({ exp: 1 }), /has expired/],
    [tokenOf({ events: {} }), /has no event of a back-channel logout/],
    [tokenOf({ sub: undefined }), /has neither a sub nor a sid of 1 to 255 characters/],
    [tokenOf({ nonce: 'n' }), /has a nonce/],
  ] as const) {
    await t.rejects(end(bodyOf(token)), { code: 'bad_request', details: { detail } })
  }
})

await test('the age of a token that is too old, or ahead, is told to operators', async (t) => {
  for (const [iat, fields] of [
    [-400, { fault: 'age', age: 400, ahead: 0 }],
    [100, { fault: 'age', age: 0, ahead: 100 }],
  ] as const) {
    const { lines, end } = logouts(`192.0.2.${Math.abs(iat) / 100 + 20}`)
    await t.rejects(end(bodyOf(tokenOf({ iat: Math.floor(Date.now() / 1000) + iat }))), { code: 'bad_request' })
    const [, line, message] = lines[0] ?? []
    const { age, ahead, fault } = Object(line)
    t.same({ fault, age: Math.round(age / 5) * 5, ahead: Math.round(ahead / 5) * 5 }, fields)
    t.match(message, /compare its clock with ours/)
  }
})

await test('a signature that is not valid is refused; keys that are away, and a sender over its limit, have to wait', async (t) => {
  const { world, calls, lines, counted, end } = logouts('192.0.2.15')
  world.signature = { is: 'invalid' }
  await t.rejects(end(bodyOf(tokenOf())), { code: 'bad_request', details: { detail: /signature .* is not valid/ } })
  const cause = new Error('no keys')
  world.signature = { is: 'away', cause }
  const problem = { code: 'provider_unavailable', details: { retryAfterSeconds: 1, cause } }
  await t.rejects(end(bodyOf(tokenOf())), problem)
  t.match(lines.at(-1), ['warn', { cause }, 'a logout of the provider waits for its keys'])
  world.signature = undefined
  await t.rejects(end(bodyOf(tokenOf())), { code: 'rate_limited', details: { retryAfterSeconds: 1 } })
  t.same(counted, ['false', 'keys_away', 'limited'])
  t.notOk(calls.some(([what]) => what === 'false' || what === 'end'))
})

await test('what Fastify refuses is malformed, too; a problem and a fault of this program are answered as such', (t) => {
  const { logout, request, counted, lines } = logouts('192.0.2.16')
  const statuses: number[] = []
  const reply: Record<string, unknown> = { raw: { shouldKeepAlive: true }, getHeader: () => undefined }
  for (const name of ['header', 'headers', 'type', 'send', 'removeHeader', 'hasHeader']) reply[name] = () => reply
  reply['code'] = reply['status'] = (status: number) => (statuses.push(status), reply)
  const tooLarge = Object.assign(new Error('too large'), { statusCode: 413, code: 'FST_ERR_CTP_BODY_TOO_LARGE' })
  for (const error of [tooLarge, new Problem('rate_limited', { retryAfterSeconds: 1 }), new TypeError('planted')]) {
    logout.fail(error, request(), reply as unknown as FastifyReply)
  }
  t.same(statuses, [400, 429, 500])
  t.match(lines[0]?.[1], { audit: 'provider_logout_refused', fault: 'form' })
  t.same(counted, ['false'])
  t.end()
})
