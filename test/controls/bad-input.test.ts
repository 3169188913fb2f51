import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'tap'
import { control, controlsWorld, shown } from '../support/controls/controls-world.ts'
import { OPS_TOKEN } from '../support/login/identity.ts'
import { exactly } from '../support/exactly.ts'

const SOON = Math.floor(Date.now() / 1000) + 3600
/** The last second of the year 9999. */
const LATEST = 253_402_300_799
const SUBJECT = { paused: true, subject: 'CR1' }
const MESSAGE = { message: 'Hello' }

const WRONG_MESSAGES: Readonly<Record<string, unknown>> = {
  empty: '',
  blank: ' \u00a0 ',
  'too long': 'x'.repeat(501),
  'too long, of characters beyond the BMP': '😀'.repeat(501),
  'a number': 1,
  null: null,
  'a list': ['x'],
  'a line break': 'a\nb',
  'a tab': 'a\tb',
  'U+0000': 'a\u0000b',
  'an escape': 'a\u001b[31mb',
  DEL: 'a\u007fb',
  C1: 'a\u009bb',
  'right-to-left override': 'a\u202eb',
  'right-to-left mark': 'a\u200fb',
  'an isolate': 'a\u2067b',
  'the Arabic letter mark': 'a\u061cb',
  'a line separator': 'a\u2028b',
}

const WRONG_TIMES: Readonly<Record<string, unknown>> = {
  'in the past': SOON - 7200,
  zero: 0,
  negative: -1,
  'a fraction': SOON + 0.5,
  'a text': String(SOON),
  null: null,
  'in milliseconds': SOON * 1000,
  unsafe: 2 ** 60,
}

await test('every bad input of /controls gets 400, and changes nothing', async (t) => {
  const { server } = await controlsWorld(t, { instances: 1, redis: false })
  const bodies: [path: string, what: string, body: unknown][] = [
    ...['/orders', '/notice'].flatMap((path) =>
      [
        '',
        '{',
        'null',
        '[]',
        '1',
        '"x"',
        '{}',
        '\ufeff{"paused":true,"message":"x"}',
        '{"paused":true,"message":"x"} x',
      ].map((body): [string, string, unknown] => [path, JSON.stringify(body), body]),
    ),
    ['/orders', 'until after the year 9999', { paused: true, until: 253_402_300_800 }],
    ['/orders', 'paused false', { paused: false }],
    ['/orders', 'paused is a text', { paused: 'true' }],
    ['/orders', 'paused is 1', { paused: 1 }],
    ['/orders', 'no paused', { message: 'x' }],
    ['/orders', 'an unknown member', { paused: true, subjects: 'CR1' }],
    ['/orders', 'a misspelt member', { paused: true, Subject: 'CR1' }],
    ['/orders', '__proto__', '{"paused":true,"__proto__":{"subject":"CR1"}}'],
    ['/orders', 'an inherited name', '{"paused":true,"constructor":1}'],
    ['/orders', 'a member twice', '{"paused":true,"subject":"CR1","subject":"CR2"}'],
    ['/orders', 'a member twice, once with an escape', '{"paused":true,"\\u0070aused":true}'],
    ['/orders', 'a comment', '{"paused":true/**/}'],
    ['/orders', 'an empty subject', { paused: true, subject: '' }],
    ['/orders', 'a subject that is null', { paused: true, subject: null }],
    ['/orders', 'a subject that is a number', { paused: true, subject: 1 }],
    ['/orders', 'a long subject', { paused: true, subject: 'x'.repeat(257) }],
    ['/orders', 'a lone surrogate', '{"paused":true,"subject":"\\ud800"}'],
    ['/orders', 'closing is a text', { paused: true, closing: 'false' }],
    ['/orders', 'closing is null', { paused: true, closing: null }],
    ['/orders', 'closing is 0', { paused: true, closing: 0 }],
    ['/orders', 'replace is false', { paused: true, replace: false }],
    ['/orders', 'replace with a subject', { ...SUBJECT, replace: true }],
    ['/notice', 'replace', { ...MESSAGE, replace: true }],
    ['/notice', 'closing', { ...MESSAGE, closing: true }],
    ['/notice', 'subject', { ...MESSAGE, subject: 'CR1' }],
    ['/notice', 'paused', { ...MESSAGE, paused: true }],
    ...Object.entries(WRONG_MESSAGES).flatMap(([what, message]): [string, string, unknown][] => [
      ['/orders', `message: ${what}`, { ...SUBJECT, message }],
      ['/notice', `message: ${what}`, { message }],
    ]),
    ...Object.entries(WRONG_TIMES).flatMap(([what, until]): [string, string, unknown][] => [
      ['/orders', `until: ${what}`, { ...SUBJECT, until }],
      ['/notice', `until: ${what}`, { ...MESSAGE, until }],
    ]),
    ['/orders', 'until 1e999', '{"paused":true,"until":1e999}'],
  ]
  for (const [path, what, body] of bodies) {
    const { status, json } = await control(server, 'PUT', path, body)
    t.equal(status, 400, `${path} ${what}`)
    t.type(json['error'], 'string')
  }
  for (const query of ['subject=', 'subject=a&subject=b', 'subject=CR1&x=1', 'Subject=CR1', 'subject=M%FCller', 'x']) {
    t.equal((await control(server, 'DELETE', `/orders?${query}`)).status, 400, query)
    t.equal((await control(server, 'DELETE', `/notice?${query}`)).status, 400, query)
    t.equal((await control(server, 'PUT', `/orders?${query}`, { paused: true })).status, 400, query)
    t.equal((await control(server, 'GET', `?${query}`)).status, 400, query)
  }
  t.match(await control(server, 'DELETE', `/orders?subject=${'x'.repeat(257)}`), {
    status: 400,
    json: { error: 'subject must be a string of 1 to 256 characters' },
  })
  t.equal((await control(server, 'DELETE', '/orders', { subject: 'CR1' })).status, 400, 'a body')
  t.equal((await control(server, 'DELETE', '/notice', '{}')).status, 400, 'a body')
  t.match(await shown(server), { version: 0, orders: null, subjects: { length: 0 }, notice: null })
  t.notOk(server.log.some(({ audit }) => audit === 'controls_changed'))
  t.match(await control(server, 'PUT', '/orders', 'x'.repeat(20_000)), {
    status: 413,
    json: { error: 'Request body is too large' },
  })
})

await test('/controls takes texts and times at their limits, whatever the Content-Type', async (t) => {
  const { server } = await controlsWorld(t, { instances: 1, redis: false })
  const message = '😀'.repeat(500)
  t.equal(
    (
      await control(server, 'PUT', '/orders', {
        paused: true,
        message,
        until: LATEST,
        closing: false,
        subject: '😀'.repeat(256),
      })
    ).status,
    200,
  )
  t.match(
    (await shown(server)).subjects,
    exactly({ subject: '😀'.repeat(256), message, until: LATEST, closing: false, version: Number }),
  )
  const subject = encodeURIComponent('😀'.repeat(256))
  t.equal((await control(server, 'DELETE', `/orders?subject=${subject}`)).status, 200)
  t.same((await shown(server)).subjects, [])
  for (const type of [
    'application/json',
    'text/plain',
    'application/x-www-form-urlencoded',
    'nonsense',
    'a/b; charset=utf-16',
  ]) {
    const headers = { authorization: `Bearer ${OPS_TOKEN}`, 'content-type': type }
    const body = JSON.stringify({ message: 'Wartung um 3 Uhr – „kurz“ 👩‍🔧' })
    t.equal((await fetch(`${server.opsUrl}/controls/notice`, { method: 'PUT', headers, body })).status, 200, type)
  }
  t.match((await shown(server)).notice, { message: 'Wartung um 3 Uhr – „kurz“ 👩‍🔧' })
  const latin1 = await fetch(`${server.opsUrl}/controls/notice`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${OPS_TOKEN}` },
    body: Buffer.from('{"message":"M\xfcller"}', 'latin1'),
  })
  t.equal(latin1.status, 400, 'not UTF-8')
})

await test('/controls needs the token, is not on the public port, and knows no other method', async (t) => {
  const { server } = await controlsWorld(t, { instances: 1, redis: false })
  for (const token of ['', 'wrong', OPS_TOKEN.slice(1), `${OPS_TOKEN}x`]) {
    t.equal((await control(server, 'GET', '', undefined, token)).status, 401)
    t.equal((await control(server, 'PUT', '/orders', { paused: true }, token)).status, 401)
    t.equal((await control(server, 'DELETE', '/orders', undefined, token)).status, 401)
  }
  const headers = { authorization: `Bearer ${OPS_TOKEN}` }
  for (const path of ['/controls', '/controls/orders', '/controls/notice']) {
    t.equal((await fetch(`${server.url}${path}`, { headers })).status, 404, `${path} on the public port`)
  }
  for (const [method, path] of [
    ['POST', '/orders'],
    ['PATCH', '/orders'],
    ['GET', '/orders'],
    ['PUT', ''],
    ['DELETE', ''],
    ['HEAD', ''],
  ] as const) {
    const { status } = await fetch(`${server.opsUrl}/controls${path}`, { method, headers })
    t.equal(status, 404, `${method} ${path}`)
  }
  const { host, hostname, port } = new URL(server.opsUrl)
  const socket = connect(Number(port), hostname)
  socket.write(
    `DELETE /controls/orders HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\nAuthorization: Bearer ${OPS_TOKEN}\r\nTransfer-Encoding: chunked\r\n\r\n`,
  )
  t.match(await text(socket), /^HTTP\/1\.1 400 /, 'a body that is to come')
  t.match(await shown(server), { version: 0 })
})

await test('without OPS_TOKEN there are no controls, no metric of them, and nothing of them is loaded', async (t) => {
  const { server } = await controlsWorld(t, { instances: 1, redis: false, settings: { OPS_TOKEN: '' } })
  t.equal((await fetch(`${server.opsUrl}/controls`)).status, 404)
  t.notMatch(await (await fetch(`${server.opsUrl}/metrics`)).text(), /bff_(controls|orders_paused|notice)/)
  t.notOk('notice' in ((await (await fetch(`${server.url}/auth/session`)).json()) as object))
})
