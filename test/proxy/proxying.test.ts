import { PassThrough, Readable } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'tap'
import { Permits } from '../../src/limits/permits.ts'
import { Problem } from '../../src/problem.ts'
import { proxy } from '../../src/proxy/proxy.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import type { ForwardOutcome } from '../../src/upstream/forwarding.ts'
import { ANSWERED, sessionWith } from '../support/proxy/sending.ts'

const cause = new Error('broken')
const UNREACHABLE: ForwardOutcome = { is: 'unreachable', cause }
const lost = (responseBegan: boolean): ForwardOutcome => ({ is: 'lost', cause, responseBegan })
const REFUSED: ForwardOutcome = { is: 'withheld', status: 401 }
const MINE = sessionWith('token')
const USER = 'subject:CR1'
const TOO_MANY = { code: 'rate_limited', details: { retryAfterSeconds: 1 } }

interface Options {
  readonly method?: 'GET' | 'POST'
  readonly credential?: 'bearer' | 'pat' | 'none'
  readonly session?: typeof MINE | undefined
  readonly key?: string
  readonly outcomes?: readonly ForwardOutcome[]
  readonly body?: string | Buffer
}

/** A call, and what is sent and counted when it is proxied. */
function proxying(options: Options = {}) {
  const { method = 'GET', credential = 'bearer', key, outcomes = [], body = '{}' } = options
  const session = 'session' in options ? options.session : MINE
  const left = [...outcomes]
  const log: unknown[] = []
  const sent: { headers: readonly string[]; body: unknown; session: unknown }[] = []
  const [calls, uploads] = [new Permits(), new Permits()]
  const raw = Object.assign(new PassThrough(), { headers: { 'transfer-encoding': 'chunked' } })
  raw.end(body)
  const world = {
    authorized: { is: 'authorized', session: sessionWith('read again') } as object,
    renewed: { is: 'authorized', session: sessionWith('renewed') } as object,
    sending: (): void => undefined,
  }
  const client = {
    forward: async (request: { headers: readonly string[]; body: unknown }) => {
      sent.push(request as never)
      await turn()
      world.sending()
      return left.shift() ?? ANSWERED
    },
  }
  const deps = {
    calls,
    uploads,
    http: { publicUrl: 'https://bff.test', maxBodyBytes: 200_000 },
    upstream: { appIdHeader: 'app', appId: 'app-id' },
    metrics: {
      upstreamRequests: { count: ({ path }: { path: string }, outcome: string) => log.push(`${path} ${outcome}`) },
      upstreamLatency: { add: () => undefined },
    },
    sessions: {
      isCurrent: () => true,
      noteAccepted: () => undefined,
      authorize: async (_: unknown, need: string) => (log.push(`authorize ${need}`), world.authorized),
      renewAfterRefusal: async (_: unknown, mayRenew: boolean) => (log.push(`renew ${mayRenew}`), world.renewed),
    },
    clients: { orders: client, reads: client },
    controls: undefined,
    records: {
      limits: { maxBodyBytes: 100_000 },
      claim: async (of: { record: { accessToken: string } }, name: string) => {
        log.push(`claim ${of.record.accessToken} ${name}`)
        throw new Problem('answer_not_kept')
      },
    },
  }
  const endpoint = { method, path: '/path', credential }
  const line = ({ sent: how }: { sent?: string }, text: string): unknown => log.push(text, how)
  const request = { id: 'request', headers: {}, ip: '192.0.2.1', log: { info: line, warn: line }, raw }
  const reply = { raw: {}, sent: false, hijack: () => log.push('hijacked') }
  const call = { endpoint, request, reply, path: '/path', session, idempotencyKey: key }
  const run = async (): Promise<unknown> => proxy(deps as never, call as never).catch((error: unknown) => error)
  const tokens = () => sent.map(({ headers }) => headers.at(headers.indexOf('authorization') + 1))
  /** Whether all permits are free again. */
  const isFree = () => calls.acquire(USER, 1) && uploads.acquire(USER, 1)
  return { world, calls, uploads, raw, sent, log, run, tokens, isFree }
}

/** A call that fails with this error while it is sent. */
function failing(method: 'GET' | 'POST', error: Error): Promise<unknown> {
  const one = proxying({ method })
  one.world.sending = () => {
    throw error
  }
  return one.run()
}

await test('a call is sent once where upstream answers, and counted', async (t) => {
  for (const method of ['GET', 'POST'] as const) {
    const { run, log, tokens, isFree, sent } = proxying({ method })
    t.equal(await run(), undefined)
    t.same(tokens(), [method === 'GET' ? 'Bearer token' : 'Bearer read again'])
    t.same(log.at(-1), '/path answered')
    t.same(sent[0]?.body, method === 'GET' ? null : Buffer.from('{}'))
    t.ok(isFree())
  }
})

await test('a GET that failed before a response is repeated once, and no order is', async (t) => {
  for (const [outcomes, method, times, code] of [
    [[UNREACHABLE], 'GET', 2, undefined],
    [[lost(false)], 'GET', 2, undefined],
    [[lost(true)], 'GET', 1, 'upstream_lost'],
    [[UNREACHABLE, UNREACHABLE], 'GET', 2, 'upstream_unreachable'],
    [[UNREACHABLE], 'POST', 1, 'upstream_unreachable'],
    [[{ is: 'withheld', status: 500 }], 'GET', 1, 'upstream_error'],
  ] as const) {
    const { run, sent, log, isFree } = proxying({ outcomes, method })
    t.equal(((await run()) as Problem | undefined)?.code, code)
    t.equal(sent.length, times)
    t.equal(log.filter((entry) => String(entry).startsWith('/path')).length, times, 'each is counted')
    t.ok(isFree())
  }
})

await test('where this server fails once an order may be sent, its outcome is unknown', async (t) => {
  const planted = new TypeError('planted')
  t.match(await failing('POST', planted), { code: 'internal_error', details: { outcome: 'unknown' }, cause: planted })
  t.equal(await failing('GET', planted), planted)
  const away = new StoreUnavailable('away')
  t.equal(await failing('POST', away), away, 'nothing was sent')
})

await test('a GET whose token upstream refuses is repeated once with another one', async (t) => {
  const { run, tokens, log } = proxying({ outcomes: [REFUSED] })
  t.equal(await run(), undefined)
  t.same(tokens(), ['Bearer token', 'Bearer renewed'])
  t.same(log, ['/path held', 'renew true', '/path answered'])
  const again = proxying({ outcomes: [REFUSED, UNREACHABLE, REFUSED] })
  t.match(await again.run(), { code: 'credential_renewed', details: { retryAfterSeconds: 0 } })
  t.equal(again.sent.length, 3)
  t.same(
    again.log.filter((entry) => String(entry).startsWith('renew')),
    ['renew true', 'renew false'],
  )
  const ended = proxying({ outcomes: [REFUSED] })
  ended.world.renewed = { is: 'ended', tag: 'tag' }
  t.match(await ended.run(), { code: 'session_expired' })
})

await test('an order whose token upstream refuses is not repeated here, but the next one has another token', async (t) => {
  const { run, sent, log } = proxying({ method: 'POST', outcomes: [REFUSED] })
  t.match(await run(), { code: 'credential_renewed', details: { retryAfterSeconds: 0 } })
  t.equal(sent.length, 1)
  t.ok(log.includes('renew true'))
})

await test('a refusal that concerns no token, or no session, is a problem', async (t) => {
  const other = proxying({ outcomes: [{ is: 'withheld', status: 502 }] })
  t.match(await other.run(), { code: 'upstream_error', status: 502 })
  const cut = proxying({ credential: 'pat', outcomes: [{ is: 'cut', status: 401, cause }] })
  t.match(await cut.run(), { code: 'upstream_lost' })
  t.same(cut.log, ['/path cut'])
  const none = proxying({ credential: 'none', session: undefined, outcomes: [REFUSED] })
  t.match(await none.run(), { code: 'upstream_error' })
  t.same(none.log, ['/path held'])
})

await test('a user has so many calls at once and no more, and so have all who have no session', async (t) => {
  for (const [session, key] of [
    [MINE, USER],
    [undefined, 'anonymous'],
  ] as const) {
    const { run, calls, sent } = proxying({ session, credential: 'none' })
    for (let count = 0; count < 99; count++) calls.acquire(key, Infinity)
    t.equal(await run(), undefined)
    calls.acquire(key, Infinity)
    t.match(await run(), TOO_MANY)
    t.equal(sent.length, 1)
    calls.release(key)
    t.equal(await run(), undefined, 'the refused one took none')
  }
})

await test('a long body is streamed, four at once of a user', async (t) => {
  const body = Buffer.alloc(70_000)
  const { run, world, uploads, sent, raw, isFree } = proxying({ method: 'POST', body })
  let isTaken = false
  world.sending = () => (isTaken = !uploads.acquire(USER, 1))
  t.equal(await run(), undefined)
  t.equal(isTaken, true)
  const [{ body: stream } = { body: undefined }] = sent
  t.ok(stream instanceof Readable)
  t.match(stream, { destroyed: true }, 'what upstream has not read is given up')
  t.equal(raw.isPaused(), false)
  t.ok(isFree())
  const full = proxying({ method: 'POST', body })
  for (let count = 0; count < 3; count++) full.uploads.acquire(USER, Infinity)
  t.equal(await full.run(), undefined)
  const refused = proxying({ method: 'POST', body })
  for (let count = 0; count < 4; count++) refused.uploads.acquire(USER, Infinity)
  t.match(await refused.run(), TOO_MANY)
  t.equal(refused.sent.length, 0)
  const short = proxying({ method: 'POST' })
  for (let count = 0; count < 4; count++) short.uploads.acquire(USER, Infinity)
  t.equal(await short.run(), undefined)
})

await test('a call whose body has come is sent by the session as it is then, if it needs one', async (t) => {
  const order = proxying({ method: 'POST' })
  await order.run()
  t.equal(order.log[0], 'authorize valid')
  order.world.authorized = { is: 'anonymous' }
  const ended = proxying({ method: 'POST' })
  ended.world.authorized = { is: 'anonymous' }
  t.match(await ended.run(), { code: 'session_expired' })
  t.equal(ended.sent.length, 0)
  t.ok(ended.isFree())
  const pat = proxying({ method: 'POST', credential: 'pat' })
  await pat.run()
  t.equal(pat.log[0], 'authorize none')
  const none = proxying({ method: 'POST', credential: 'none' })
  await none.run()
  t.same(none.log, ['/path answered'])
})

await test('a browser that leaves before its body is there has sent nothing', async (t) => {
  const { run, raw, sent, log } = proxying({ method: 'POST' })
  raw.destroy()
  t.equal(await run(), undefined)
  t.equal(sent.length, 0)
  t.ok(log.includes('hijacked'))
  t.ok(log.includes('nothing'))
})

await test('a call with a key is sent by what keeps its record, with as long a body as that may have', async (t) => {
  const { run, sent, log } = proxying({ method: 'POST', key: 'order-1' })
  t.match(await run(), { code: 'answer_not_kept' })
  t.same([log.at(-1), sent.length], ['claim read again order-1', 0])
  const long = { method: 'POST', body: Buffer.alloc(100_001) } as const
  t.match(await proxying({ ...long, key: 'order-1' }).run(), { code: 'body_too_large' })
  t.equal(await proxying(long).run(), undefined)
  t.match(await proxying({ method: 'POST', body: Buffer.alloc(200_001) }).run(), { code: 'body_too_large' })
  const none = proxying({ method: 'POST', key: 'order-1', credential: 'none' })
  t.equal(await none.run(), undefined, 'without a session there is nobody to whom a key could belong')
})
