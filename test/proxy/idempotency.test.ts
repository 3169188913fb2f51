import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { test } from 'tap'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { codeOf, keyedWorld } from '../support/idempotency/keyed-world.ts'
import { TRANSFER } from '../support/user.ts'
import { samplesOf } from '../support/telemetry/metrics.ts'
import { ok } from '../support/upstream/raw-upstream.ts'
import { until } from '../support/time/until.ts'
import { logIn } from '../support/parts.ts'
import { exactly } from '../support/exactly.ts'

const KIB = 1024

await test('A call with an Idempotency-Key', async (t) => {
  const world = await keyedWorld(t)
  const { upstream, order, other, call, abandon } = world
  const audited = (outcome: string) =>
    [...world.server.log, ...other.log].filter((line) => line['audit'] === 'idempotency' && line['outcome'] === outcome)

  await t.test('repeated with the same key gets the same response, and upstream sees it once', async (t) => {
    const body = Buffer.concat([randomBytes(1000), Buffer.from('\r\n\0')])
    const packed = gzipSync('x'.repeat(5000))
    const head =
      'HTTP/1.1 201 Created\r\nContent-Type: application/x-own\r\nETag: "1"\r\nX-RateLimit-Limit: 5\r\nX-Secret: 1\r\n'
    const responses: Record<string, Buffer> = {
      length: Buffer.concat([Buffer.from(`${head}Content-Length: ${body.length}\r\n\r\n`), body]),
      chunked: Buffer.concat([
        Buffer.from(`${head}Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n`),
        body,
        Buffer.from('\r\n0\r\n\r\n'),
      ]),
      empty: Buffer.from(`${head}Content-Length: 0\r\n\r\n`),
      'no body': Buffer.from('HTTP/1.1 204 No Content\r\nETag: "2"\r\n\r\n'),
      'a length without a body': Buffer.from(
        'HTTP/1.1 304 Not Modified\r\nETag: "2"\r\nContent-Length: 500000\r\n\r\n',
      ),
      compressed: Buffer.concat([
        Buffer.from(`${head}Content-Encoding: gzip\r\nContent-Length: ${packed.length}\r\n\r\n`),
        packed,
      ]),
      refusal: Buffer.from('HTTP/1.1 403 Scope\r\nContent-Length: 2\r\n\r\n[]'),
    }
    for (const [name, response] of Object.entries(responses)) {
      upstream.reset()
      upstream.answer = (_request, socket) => void socket.write(response)
      const first = await order({ key: `same ${name}` })
      t.equal(first.headers['idempotency-replayed'], undefined)
      t.equal(first.headers['content-encoding'], name === 'compressed' ? 'gzip' : undefined)
      t.ok(response.includes(first.bytes), `${name}: as upstream sent it`)
      for (const at of [world.server, other]) {
        const again = await order({ key: `same ${name}`, at })
        t.equal(again.status, first.status, name)
        t.same(again.bytes, first.bytes, name)
        const { 'x-request-id': firstId, date: _date, ...headers } = first.headers
        const { 'x-request-id': id, date: _again, 'idempotency-replayed': replayed, ...others } = again.headers
        t.same(others, headers, name)
        t.equal(replayed, 'true')
        t.not(id, firstId)
      }
      t.equal(upstream.requests.length, 1, name)
      t.equal(upstream.header('idempotency-key'), `same ${name}`, 'upstream gets the key too')
    }
    t.equal(audited('replayed').length, 2 * Object.keys(responses).length)
    t.notMatch(JSON.stringify(audited('replayed')), /same length/, 'no key is logged')
  })

  await t.test('is refused with 422 if the key belongs to another method, path, query or body', async (t) => {
    upstream.reset()
    t.equal((await order({ key: 'mine', path: `${TRANSFER}?a=1` })).status, 200)
    const others = [
      await order({ key: 'mine' }),
      await order({ key: 'mine', path: `${TRANSFER}?a=2` }),
      await order({ key: 'mine', path: `${TRANSFER}?a=1`, body: '{"amount":2}', at: other }),
      await order({ key: 'mine', path: `/api/payment-agents/v1/withdraw?a=1` }),
      await call('PATCH', '/api/payment-agents/v1/clients/me', { body: '{}', headers: { 'idempotency-key': 'mine' } }),
    ]
    for (const response of others) {
      t.equal(response.status, 422)
      t.equal(codeOf(response), 'idempotency_key_reused')
    }
    t.equal(upstream.requests.length, 1)
    t.equal(audited('key_reused').length, others.length)
  })

  await t.test('of another session is unknown to this one', async (t) => {
    upstream.reset()
    const browser = new JarBrowser()
    const url = new URL(world.server.url)
    await logIn(browser, url.origin)
    const cookie = browser.cookieHeader(url, url)
    t.equal((await order({ key: 'shared' })).status, 200)
    const theirs = await order({ key: 'shared', body: '{"amount":7}', headers: { cookie } })
    t.equal(theirs.status, 200)
    t.equal(theirs.headers['idempotency-replayed'], undefined)
    t.equal(upstream.requests.length, 2)
  })

  await t.test('is sent once when many equal ones arrive at the same moment on two instances', async (t) => {
    upstream.reset()
    const sent: Socket[] = []
    upstream.answer = (_request, socket) => void sent.push(socket)
    const all = Array.from({ length: 20 }, (_each, index) =>
      order({ key: 'at once', at: index % 2 === 0 ? other : world.server }),
    )
    let refused = 0
    for (const each of all) void each.then(({ status }) => (refused += status === 409 ? 1 : 0))
    await until(() => refused === 19, 'all but one are refused')
    sent[0]?.write(ok('{"bought":1}'))
    const responses = await Promise.all(all)
    t.equal(responses.filter(({ status }) => status === 200).length, 1)
    const late = responses.find(({ status }) => status === 409)
    t.match(late?.json, { code: 'idempotency_in_progress' })
    t.equal(late?.json['outcome'], undefined)
    t.equal(late?.headers['retry-after'], '1')
    t.equal((await order({ key: 'at once' })).text, '{"bought":1}')
    t.equal(upstream.requests.length, 1)
  })

  await t.test('is refused with 400 if the key is not 1 to 255 printable ASCII characters, once', async (t) => {
    upstream.reset()
    for (const key of ['', 'x'.repeat(256), 'tab\tinside', 'caf\xe9']) {
      const response = await order({ key })
      t.equal(response.status, 400, JSON.stringify(key))
      t.equal(codeOf(response), 'bad_request')
    }
    const text = await world.raw(
      `POST ${TRANSFER} HTTP/1.1\r\nHost: h\r\nCookie: ${world.cookie}\r\nX-CSRF: 1\r\n` +
        'Connection: close\r\nIdempotency-Key: a\r\nIdempotency-Key: b\r\nContent-Length: 0\r\n\r\n',
    )
    t.match(text, /^HTTP\/1\.1 400 /)
    t.equal(upstream.requests.length, 0)
    for (const key of ['!', `~${' '.repeat(253)}~`]) t.equal((await order({ key })).status, 200)
  })

  await t.test('on a GET is passed on and means nothing', async (t) => {
    upstream.reset()
    for (let count = 0; count < 2; count++) {
      await call('GET', '/api/wallet/v1/wallets', { headers: { 'idempotency-key': 'x'.repeat(300) } })
    }
    t.equal(upstream.requests.length, 2)
  })

  await t.test('is sent once its body is complete, however large it is up to 256 KiB', async (t) => {
    for (const size of [10, 100 * KIB, 256 * KIB]) {
      upstream.reset()
      let head = ''
      upstream.onHead = (text) => (head = text)
      const body = new PassThrough()
      const response = order({ key: `slow ${size}`, body, headers: { 'transfer-encoding': 'chunked' } })
      body.write(Buffer.alloc(size - 1, 'a'))
      // A round trip of another request, in which the first part has arrived.
      await call('GET', '/auth/session')
      t.equal(head, '', 'nothing has been sent upstream')
      body.end('z')
      t.equal((await response).status, 200)
      t.equal(upstream.requests[0]?.body.length, size)
      t.match(head, new RegExp(`content-length: ${size}`, 'i'))
    }
    upstream.reset()
    for (const headers of [{}, { 'transfer-encoding': 'chunked' }]) {
      const response = await order({ key: 'too large', body: Buffer.alloc(256 * KIB + 1), headers })
      t.equal(response.status, 413)
    }
    t.equal(upstream.requests.length, 0)
    t.equal((await order({ key: 'too large', body: 'less' })).status, 200, 'the key of a refused body is free')
  })

  await t.test('is finished and recorded although its browser has left', async (t) => {
    upstream.reset()
    const upstreamSocket = await abandon('left')
    t.equal(codeOf(await order({ key: 'left' })), 'idempotency_in_progress')
    upstreamSocket.write(ok('{"left":1}'))
    await until(async () => (await order({ key: 'left' })).text === '{"left":1}', 'the response was recorded')
    t.equal(upstream.requests.length, 1)
    const lines = world.server.log.filter(({ audit }) => audit === 'browser_left')
    t.match(lines, exactly({ method: 'POST', status: 200, sent: 'whole' }))
  })

  await t.test(
    'whose response is larger than 256 KiB is streamed, and its repetition gets answer_not_kept',
    async (t) => {
      const sizes = { exact: 256 * KIB, more: 256 * KIB + 1, much: 3 * 1024 * KIB }
      for (const [name, size] of Object.entries(sizes)) {
        for (const framing of ['length', 'chunked'] as const) {
          upstream.reset()
          const body = randomBytes(size)
          upstream.answer = (_request, socket) => {
            socket.write(
              `HTTP/1.1 200 OK\r\n${framing === 'length' ? `Content-Length: ${size}` : 'Transfer-Encoding: chunked'}\r\n\r\n`,
            )
            if (framing === 'length') return void socket.write(body)
            for (let at = 0; at < size; at += 60_000) {
              const chunk = body.subarray(at, at + 60_000)
              socket.write(Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n')]))
            }
            socket.write('0\r\n\r\n')
          }
          const key = `${name} ${framing}`
          t.ok((await order({ key })).bytes.equals(body), `${key}: the first call`)
          const again = await order({ key, at: other })
          if (name === 'exact') t.ok(again.bytes.equals(body), `${key}: byte for byte`)
          else
            t.match(again.json, { code: 'answer_not_kept', status: 409, outcome: 'unknown', detail: /status 200/ }, key)
          t.equal(upstream.requests.length, 1)
        }
      }
    },
  )

  await t.test('is counted by its outcome', async (t) => {
    const counts = await Promise.all(
      [world.server, other].map(({ opsUrl }) => samplesOf(opsUrl, 'bff_idempotency_requests_total')),
    )
    for (const outcome of ['answered', 'replayed', 'in_progress', 'key_reused', 'not_kept', 'repeated_not_kept']) {
      t.ok(
        counts.some((each) => (each.get(`outcome="${outcome}"`) ?? 0) > 0),
        outcome,
      )
    }
  })
})
