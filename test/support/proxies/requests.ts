import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { connect } from 'node:tls'
import type { Test } from 'tap'
import type { Send } from './connection.ts'
import type { Fleet } from '../deployment/deployed.ts'
import { answerJson } from '../upstream/scripted-upstream.ts'
import { nextEvent, until } from '../time/until.ts'

/** Paths of the catalog: a read, an order, and an order without a body. */
export const ACCOUNTS = '/api/trading/v1/options/accounts'
export const TRANSFER = '/api/payment-agents/v1/transfer'
export const VERIFICATION = '/api/payment-agents/v1/withdraw/verification_code'

const DOWNLOAD = Buffer.alloc(20 * 1024 * 1024, 'a download of twenty MiB ')
/** About as many characters as the address to which a login returns, which takes three for one of some characters. */
const LONGEST_HEADER = 6400
const LARGEST_UPLOAD = Buffer.alloc(1024 * 1024, 'an upload of one MiB ')
/** A part of a stream that a proxy buffers has not arrived after this time. */
const STREAM_MS = 3000

/** Checks the redirect to https, HTTP/2, and the headers of requests. */
export async function entranceIsOurs(
  t: Test,
  {
    publicUrl,
    insecureUrl,
    speaksHttp2,
  }: { readonly publicUrl: string; readonly insecureUrl: string; readonly speaksHttp2: boolean },
  send: Send,
): Promise<void> {
  const { hostname: host, port } = new URL(publicUrl)
  const tls = connect({
    host,
    port: Number(port || 443),
    ALPNProtocols: ['h2', 'http/1.1'],
    servername: host,
  })
  await nextEvent(tls, 'secureConnect')
  t.equal(tls.alpnProtocol, speaksHttp2 ? 'h2' : 'http/1.1', 'the version of HTTP')
  tls.destroy()
  const insecure = await fetch(`${insecureUrl}/auth/session?x=%2F`, { redirect: 'manual' })
  t.match(String(insecure.status), /^30[18]$/)
  t.match(insecure.headers.get('location'), /^https:\/\/localhost.*\/auth\/session\?x=%2F$/, 'http goes on to https')
  const foreign = await send(TRANSFER, { method: 'POST', headers: { origin: 'https://elsewhere.example' } })
  t.match(await foreign.json(), { code: 'csrf_rejected' }, 'Origin comes through')
  const login = await send('/auth/login', { headers: { 'sec-fetch-dest': 'image' }, redirect: 'manual' })
  t.match(await login.json(), { code: 'navigation_required' }, 'Sec-Fetch-Dest comes through')
  t.equal((await send('/auth/login', { method: 'HEAD' })).status, 405)
  for (const path of ['/no/such', '/no%2Fsuch', '/no//such?a=%2F%0A']) {
    const answer = await send(path)
    t.equal(answer.headers.get('content-type'), 'application/problem+json', `${path}: refused by us`)
    await answer.arrayBuffer()
  }
}

/** Scripts the response of upstream to calls of one name. */
function answerTo(
  { upstream }: Fleet,
  name: string,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): string {
  const usual = upstream.onRest
  upstream.onRest = (request, response) =>
    request.url?.endsWith(`?${name}`) === true ? answer(request, response) : usual(request, response)
  return `?${name}`
}

/** A hash to compare bodies with. */
export const digest = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** Checks that bodies and conditional requests pass, and that the server itself refuses a body that is too large. */
export async function bodiesPass(t: Test, fleet: Fleet, send: Send): Promise<void> {
  const tagged = answerTo(fleet, 'tagged', ({ headers }, response) => {
    if (headers['if-none-match'] === '"one"') response.writeHead(304, { etag: '"one"' }).end()
    else response.writeHead(200, { etag: '"one"' }).end('{}')
  })
  const first = await send(ACCOUNTS + tagged)
  t.match([first.status, first.headers.get('etag'), await first.text()], [200, '"one"', '{}'])
  const again = await send(ACCOUNTS + tagged, { headers: { 'if-none-match': '"one"' } })
  t.equal(again.status, 304, 'a condition comes through')

  const long = `"${'long'.repeat(LONGEST_HEADER / 4)}"`
  const labelled = answerTo(fleet, 'labelled', (_request, response) =>
    response.writeHead(200, { etag: long }).end('{}'),
  )
  const answer = await send(ACCOUNTS + labelled)
  t.match([answer.status, answer.headers.get('etag')], [200, long], 'a long header of a response comes through')
  await answer.arrayBuffer()

  const download = answerTo(fleet, 'download', (_request, response) => response.end(DOWNLOAD))
  const got = new Uint8Array(await (await send(ACCOUNTS + download)).arrayBuffer())
  t.equal(digest(got), digest(DOWNLOAD), '20 MiB come down')

  const upload = answerTo(fleet, 'upload', (request, response) => {
    void buffer(request).then((body) => answerJson(response, 200, { sha256: digest(body) }))
  })
  const post = (body: Buffer): ReturnType<Send> => send(TRANSFER + upload, { method: 'POST', body })
  t.match(await (await post(LARGEST_UPLOAD)).json(), { sha256: digest(LARGEST_UPLOAD) }, '1 MiB goes up')
  const refused = await post(Buffer.concat([LARGEST_UPLOAD, LARGEST_UPLOAD, LARGEST_UPLOAD]))
  t.equal(refused.status, 413)
  t.match(await refused.json(), { code: 'body_too_large' }, 'more is refused in our words')
}

/** Checks that nothing is buffered: neither peer sends its second part before the other has the first. */
export async function nothingIsHeldBack(
  t: Test,
  fleet: Fleet,
  { streamsFromBytes = 2 }: { readonly streamsFromBytes?: number },
  send: Send,
): Promise<void> {
  const start = '[1'.padEnd(streamsFromBytes)
  const framings: [name: string, headers: Record<string, string>][] = [
    ['chunked', {}],
    ['measured', { 'content-length': String(start.length + ',2]'.length) }],
  ]
  for (const [name, headers] of framings) {
    let isRead = false
    let wasReadInTime = false
    const slow = answerTo(fleet, name, (_request, response) => {
      response.writeHead(200, headers).write(start)
      const giveUpAt = performance.now() + STREAM_MS
      void until(() => isRead || performance.now() > giveUpAt).then(() => {
        wasReadInTime = isRead
        response.end(',2]')
      })
    })
    const answer = await send(ACCOUNTS + slow)
    let text = ''
    for await (const part of answer.body ?? []) {
      text += Buffer.from(part as Uint8Array).toString()
      isRead = true
    }
    t.equal(text, `${start},2]`)
    t.ok(wasReadInTime, `${name}: an answer comes as it is written`)
  }

  const arrival = Promise.withResolvers<boolean>()
  const long = answerTo(fleet, 'long', (request, response) => {
    request.once('data', () => arrival.resolve(true))
    void buffer(request).then((body) => answerJson(response, 200, { bytes: body.length }))
  })
  const half = LARGEST_UPLOAD.subarray(0, 256 * 1024)
  let didArrive = false
  async function* parts(): AsyncGenerator<Buffer> {
    yield half
    didArrive = await Promise.race([arrival.promise, delay(STREAM_MS, false)])
    yield half
  }
  const sent = await send(TRANSFER + long, { method: 'POST', body: parts(), duplex: 'half' })
  t.match(await sent.json(), { bytes: 2 * half.length })
  t.ok(didArrive, 'a request goes as it is sent')
}

/** Checks that many requests share a connection. */
export async function manyRequestsPass(t: Test, send: Send, overHttp2: Send): Promise<void> {
  const statuses: number[] = []
  const count = async (call: ReturnType<Send>): Promise<void> => {
    const answer = await call
    await answer.arrayBuffer()
    statuses.push(answer.status)
  }
  for (let index = 0; index < 300; index++) await count(send('/auth/session'))
  await Promise.all(Array.from({ length: 100 }, () => count(overHttp2(ACCOUNTS))))
  t.same(new Set(statuses), new Set([200]), '300 on one connection, 100 at once on one of HTTP/2')
}
