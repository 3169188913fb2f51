import { deepEqual as equal } from 'node:assert/strict'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import * as fc from 'fast-check'
import { test } from 'tap'
import type { TestServer } from '../support/server/test-server.ts'
import { until } from '../support/time/until.ts'
import { ok } from '../support/upstream/raw-upstream.ts'
import { startWorld, API } from '../support/world.ts'
import { ACCOUNTS, TRANSFER, type Answer, type User } from '../support/user.ts'

const SETTINGS = '/api/payment-agents/v1/clients/me'
/** More is not sent with an Idempotency-Key, and not kept of a response. */
const MAX_KEYED = 262_144

/** The same exchanges in each run, unless told otherwise. */
const SEED = Number(process.env['SEED'] ?? 1)

/** A call of a browser, and what upstream does with it. Sizes are of bodies. */
const exchange = fc.record({
  call: fc.constantFrom(['GET', ACCOUNTS], ['POST', TRANSFER], ['PATCH', SETTINGS]),
  isKeyed: fc.boolean(),
  size: fc.constantFrom(0, 1, 300, 65_535, 65_536, 65_537, 90_000, MAX_KEYED, MAX_KEYED + 1),
  isChunked: fc.boolean(),
  pieces: fc.constantFrom(1, 2, 5),
  /** The session is not in the near cache, so the body arrives while it is read. */
  isForgotten: fc.boolean(),
  answer: fc.record({
    status: fc.constantFrom(200, 201, 204, 205, 304, 400, 404, 408, 413, 421, 429, 302, 500, 503),
    size: fc.constantFrom(0, 2, 20_000, MAX_KEYED, MAX_KEYED + 1),
    framing: fc.constantFrom('length', 'chunked', 'end'),
    fault: fc.constantFrom('none', 'none', 'early', 'silence', 'head', 'body'),
  }),
})
type Exchange = typeof exchange extends fc.Arbitrary<infer Value> ? Value : never

/** A body of which no part looks like one of another call. */
const bodyOf = (name: string, size: number): string => `${name},`.repeat(size / name.length + 1).slice(0, size)
const isBodiless = (status: number): boolean => status === 204 || status === 304

/** The bytes of upstream's response, as far as it sends them. `early` is sent before the request has arrived. */
function response({ status, size, framing, fault }: Exchange['answer'], name: string, body: string): string {
  const length = framing === 'length' ? `Content-Length: ${size}\r\n` : 'Transfer-Encoding: chunked\r\n'
  const frame = isBodiless(status) ? '' : framing === 'end' ? 'Connection: close\r\n' : length
  const head = `HTTP/1.1 ${status} \r\nETag: "${name}"\r\n${frame}\r\n`
  const chunks = size === 0 ? '0\r\n\r\n' : `${size.toString(16)}\r\n${body}\r\n0\r\n\r\n`
  const rest = isBodiless(status) ? '' : framing === 'chunked' ? chunks : body
  if (fault === 'silence') return ''
  if (fault === 'head') return head.slice(0, -2)
  // What ends with its connection cannot break off.
  return head + (fault === 'body' && framing !== 'end' ? rest.slice(0, rest.length / 2) : rest)
}

/** A status, and what a problem says. */
interface Expected {
  readonly status: number
  readonly code?: string
  readonly outcome?: string | undefined
}

/** What the browser should get: upstream's response, or a problem. Undefined: a response that breaks off. */
function expected({ call: [method], isKeyed, size, answer }: Exchange): Expected | undefined {
  const isOrder = method !== 'GET'
  const hasKey = isOrder && isKeyed
  const { status, fault, framing } = answer
  const outcome = isOrder ? 'unknown' : undefined
  const lost = { status: 502, code: 'upstream_lost', outcome }
  if (hasKey && size > MAX_KEYED) return { status: 413, code: 'body_too_large' }
  if (fault === 'silence' || fault === 'head') return lost
  if (status >= 500) return { status, code: 'upstream_error', outcome }
  // Browsers would repeat an order after a 408 or 421.
  const isHeldBack = status === 302 || (isOrder && !hasKey && (status === 408 || status === 421))
  if (isHeldBack) return { status: 502, code: 'upstream_error', outcome }
  if (status === 205) return { status: 204 }
  const isWhole =
    fault !== 'body' || isBodiless(status) || framing === 'end' || (answer.size === 0 && framing === 'length')
  if (isWhole) return { status }
  const isStreamed = !hasKey || (framing === 'length' && answer.size > MAX_KEYED)
  if (answer.size > 0 && isStreamed) return undefined
  if (hasKey && status === 413) return { status, code: 'body_too_large' }
  return hasKey && status === 429 ? { status, code: 'rate_limited' } : lost
}

/** What a second call with the key of the first gets, and whether it is sent. */
function expectedAgain({ answer }: Exchange, first: Expected | undefined): Expected & { isSent: boolean } {
  const isSent =
    answer.fault !== 'silence' && answer.fault !== 'head' && (answer.status === 413 || answer.status === 429)
  if (isSent) return { status: 200, isSent }
  const isNotKept = answer.size > MAX_KEYED && !isBodiless(first?.status ?? 0) && first?.code === undefined
  if (isNotKept) return { status: 409, code: 'answer_not_kept', outcome: 'unknown', isSent }
  if (first?.outcome === 'unknown') return { status: 409, code: 'outcome_unknown', outcome: 'unknown', isSent }
  return { status: first?.status ?? 0, isSent }
}

/** Sends the call as an Exchange says. Undefined if the response breaks off. */
async function send(
  user: Pick<User, 'call'>,
  of: Exchange,
  name: string,
  at?: TestServer,
): Promise<Answer | undefined> {
  const {
    call: [method, path],
    isKeyed,
    size,
    isChunked,
    pieces,
  } = of
  const body = bodyOf(name, size)
  const framing = isChunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': String(size) }
  const headers = method === 'GET' ? {} : { ...framing, ...(isKeyed && { 'idempotency-key': name }) }
  async function* arriving(): AsyncGenerator<Buffer> {
    const bytes = Math.ceil(size / pieces)
    for (let at = 0; at < size; at += bytes) {
      yield Buffer.from(body.slice(at, at + bytes))
      await turn()
    }
  }
  const init = { headers, ...(method !== 'GET' && { body: Readable.from(arriving()) }), at }
  return user.call(method, path, init).catch((error: Error) => {
    // Any other error is that of a browser without a response, which would send an order again.
    if (error.message === 'aborted') return undefined
    throw error
  })
}

/** What a test compares of a response: its status, and what it says as a problem. */
function shown(answer: Answer | undefined): Expected | undefined {
  if (answer?.headers['content-type'] !== 'application/problem+json') return answer && { status: answer.status }
  const { code, outcome } = answer.json as { code: string; outcome?: string }
  return { status: answer.status, code, outcome }
}

/** Like deepEqual, for which an absent member is none that is undefined. */
const same = (found?: Expected, wanted?: Expected): void =>
  equal(JSON.stringify(found, ['status', 'code', 'outcome']), JSON.stringify(wanted, ['status', 'code', 'outcome']))

await test('what a browser gets is true, and no order is sent twice, whatever upstream does', async (t) => {
  const world = await startWorld(t, { ...API, redis: true, instances: 2 })
  const { upstream, servers } = world
  const store = await world.storeClient()
  const [session = ''] = await store.keys('bff:1:session:*')
  let count = 0
  const isKept = async (of: Exchange): Promise<void> => {
    const name = `call-${++count}`
    const {
      call: [method],
      isKeyed,
      size,
      answer,
    } = of
    const body = bodyOf(`answer-${count}`, answer.size)
    let heads = 0
    let answered: Socket | undefined
    const respond = (socket: Socket): void => {
      socket.write(response(answer, name, body), 'latin1')
      if (answer.framing === 'end' || !['none', 'early'].includes(answer.fault)) socket.end()
    }
    upstream.reset()
    upstream.onHead = (_head, socket) => {
      heads++
      if (answer.fault !== 'early') return
      answered = socket
      respond(socket)
    }
    upstream.answer = (_request, socket) => {
      if (answer.fault !== 'early') respond(socket)
    }
    if (of.isForgotten) await store.pExpire(session, await store.pTTL(session))
    const first = await send(world, of, name)
    // The rest of the request must not be taken for the next one.
    if (answered !== undefined) await until(() => upstream.requests.length > 0 || answered?.destroyed === true)
    const wanted = expected(of)
    same(shown(first), wanted)
    if (first !== undefined && wanted?.code === undefined) {
      equal(first.headers.etag, `"${name}"`)
      equal(first.text === (isBodiless(first.status) ? '' : body), true, 'the body is that of upstream')
    }
    const hasKey = method !== 'GET' && isKeyed
    const isTooLarge = hasKey && size > MAX_KEYED
    equal(heads, isTooLarge ? 0 : method === 'GET' && answer.fault === 'silence' ? 2 : 1, 'how often it is sent')
    for (const each of upstream.requests)
      equal(each.body === (method === 'GET' ? '' : bodyOf(name, size)), true, 'upstream gets its body')
    if (!hasKey || isTooLarge) return
    upstream.onHead = () => heads++
    upstream.answer = (_request, socket) => void socket.write(ok())
    const { isSent: isSentAgain, ...again } = expectedAgain(of, wanted)
    let second: Answer | undefined
    do second = await send(world, of, name, servers[1])
    while (shown(second)?.code === 'idempotency_in_progress')
    same(shown(second), again)
    equal(heads, isSentAgain ? 2 : 1, 'how often it is sent with its key')
    if (isSentAgain || again.code !== undefined) return
    equal(second?.text === first?.text, true, 'the same again')
  }
  await fc.assert(fc.asyncProperty(exchange, isKept), { numRuns: 200, seed: SEED })
  t.equal(count, 200)
})
