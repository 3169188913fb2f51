import { test } from 'tap'
import { sendTo } from '../support/user.ts'
import { ALONE, IN_PRODUCTION } from '../support/server/settings.ts'
import { testRedis, testServer } from '../support/server/test-server.ts'
import { valueOf } from '../support/telemetry/metrics.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { exactly } from '../support/exactly.ts'

const EVIL = 'https://evil.example'
const REFUSALS: [method: string, path: string, headers: Record<string, string>, code: string][] = [
  ['GET', '/api/account/v1/nickname', { 'x-csrf': '1', origin: EVIL }, 'csrf_rejected'],
  ['POST', '/auth/logout', { 'x-csrf': '1', origin: EVIL }, 'csrf_rejected'],
  ['GET', '/ws/public', { origin: EVIL }, 'origin_rejected'],
  ['OPTIONS', '/api/account/v1/nickname', { origin: EVIL, 'access-control-request-method': 'GET' }, 'origin_rejected'],
]

await test('in development origin_rejected names the refused Origin and the allowed ones', async (t) => {
  const FRONTEND_ORIGINS = 'http://localhost:5173,http://localhost:3000'
  const { port } = await testServer(t, { ...ALONE, FRONTEND_ORIGINS })
  for (const [method, path, headers, code] of REFUSALS) {
    const { status, json } = await sendTo(port, method, path, { headers })
    t.equal(status, 403, `${method} ${path}`)
    t.match(json, { code, detail: EVIL })
    for (const origin of FRONTEND_ORIGINS.split(',')) t.match(json['detail'], origin)
  }
  const { json } = await sendTo(port, 'GET', '/ws/public', {
    headers: { connection: 'upgrade', upgrade: 'websocket' },
  })
  t.match(json, { detail: /Origin of the request is none/ })
})

await test('in production the log names a refused Origin once a minute', async (t) => {
  const { port, log, opsUrl } = await testServer(t, { ...IN_PRODUCTION, REDIS_URL: (await testRedis(t)).url })
  for (let round = 0; round < 3; round++) {
    for (const [method, path, headers] of REFUSALS) {
      const { status, text } = await sendTo(port, method, path, { headers })
      t.equal(status, 403)
      t.notMatch(text, EVIL)
      t.notMatch(text, 'bff.example')
    }
  }
  await sendTo(port, 'GET', '/ws/public', { headers: { origin: `https://${'a'.repeat(4000)}` } })
  const logged = log.filter(({ msg }) => msg === 'an origin is not allowed')
  t.equal(logged.length, 2)
  t.match(logged[0], { origin: EVIL, allowed: ['https://bff.example'], level: 40 })
  t.equal(String(logged[1]?.['origin']).length, 128)
  t.equal(await valueOf(opsUrl, 'bff_refused_origins_total'), 13)
})

await test('in production the log names at most ten refused Origins a minute, in printable characters, and counts the others', async (t) => {
  const minutes = new HeldTimers(t, 'setInterval', 60_000)
  const { port, log, opsUrl } = await testServer(t, { ...IN_PRODUCTION, REDIS_URL: (await testRedis(t)).url })
  const refuse = (origin: string) => sendTo(port, 'GET', '/ws/public', { headers: { origin } })
  await refuse('https://\u00e9vil.example\t"')
  for (let page = 0; page < 30; page++) await refuse(`https://page-${page}.example`)
  for (let page = 0; page < 30; page++) await refuse('https://page-29.example')
  const named = () => log.filter(({ msg }) => msg === 'an origin is not allowed')
  t.equal(named().length, 10)
  t.equal(named()[0]?.['origin'], 'https://?vil.example?"')
  t.equal(new Set(named().map(({ origin }) => origin)).size, 10)
  t.equal(await valueOf(opsUrl, 'bff_refused_origins_total'), 61)
  t.notMatch(await (await fetch(`${opsUrl}/metrics`)).text(), /page-\d/, 'a metric has no Origin')
  minutes.run()
  t.match(
    named().slice(10),
    exactly({ origin: 'https://page-29.example', allowed: ['https://bff.example'], count: 21 }),
  )
  minutes.run()
  t.equal(named().length, 11)
})
