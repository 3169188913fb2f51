import { parseEnv } from 'node:util'
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
  ['POST', '/ws/session', { origin: EVIL }, 'origin_rejected'],
  ['OPTIONS', '/api/account/v1/nickname', { origin: EVIL, 'access-control-request-method': 'GET' }, 'origin_rejected'],
]

await test('in development origin_rejected names the refused Origin and the allowed ones', async (t) => {
  const FRONTEND_ORIGINS = 'http://localhost:5173,http://localhost:3000'
  const { port } = await testServer(t, { ...ALONE, FRONTEND_ORIGINS })
  for (const [method, path, headers, code] of REFUSALS) {
    const { status, json } = await sendTo(port, method, path, { headers })
    t.equal(status, 403, `${method} ${path}`)
    t.match(json, { code })
    const isNamed = !path.startsWith('/ws/')
    for (const origin of [EVIL, ...FRONTEND_ORIGINS.split(',')]) {
      t.equal(String(json['detail']).includes(origin), isNamed, `${path}: ${origin}`)
    }
  }
})

for (const kind of ['development', 'production']) {
  await test(`in ${kind} a page of another origin may read that a socket is refused because of it, and nothing else`, async (t) => {
    const settings = kind === 'development' ? ALONE : { ...IN_PRODUCTION, REDIS_URL: (await testRedis(t)).url }
    const { port, log, opsUrl } = await testServer(t, settings)
    const listed = settings.PUBLIC_URL
    const ask = (path: string, headers: Record<string, string>) => sendTo(port, 'GET', path, { headers })
    const refused: Record<string, string>[] = [
      { origin: EVIL },
      { origin: EVIL, referer: listed },
      { origin: 'null' },
      // A page that asks its own origin, which a proxy serves, sends no Origin.
      { referer: `${EVIL}/page?query` },
    ]
    for (const path of ['/ws/public', '/ws/session', '/ws/trading/VRTC100']) {
      for (const headers of refused) {
        const { status, json, text, headers: response } = await ask(path, headers)
        t.equal(status, 403, `${path} ${JSON.stringify(headers)}`)
        t.match(json, { code: 'origin_rejected', detail: json['title'] })
        t.notMatch(text, /evil|bff\.example|localhost/)
        t.equal(response['access-control-allow-origin'], '*')
        t.strictSame(
          Object.keys(response).filter((name) => /^access-control-(?!allow-origin$)|cookie/.test(name)),
          [],
        )
      }
      for (const headers of [{}, { origin: listed }, { referer: `${listed}/page` }, { referer: 'none' }]) {
        const { status, headers: response } = await ask(path, headers)
        t.equal(status, 426, `${path} ${JSON.stringify(headers)}`)
        t.equal(response['access-control-allow-origin'], undefined)
      }
    }
    const logged = log.filter(({ msg }) => msg === 'an origin is not allowed')
    t.match(logged, exactly({ origin: EVIL, allowed: [listed] }, { origin: 'null' }))
    t.equal(await valueOf(opsUrl, 'bff_refused_origins_total'), 12)
  })
}

await test('in development the log names the setting that would allow a page of this machine or its network', async (t) => {
  const { port, log } = await testServer(t, ALONE)
  const near = [
    'http://localhost:5174',
    'http://127.0.0.1:5173',
    'http://[::1]:5173',
    'http://app.localhost',
    'http://192.168.1.20:5173',
    'http://[fd00::1]:5173',
  ]
  const far = [EVIL, 'null', `http://${'a'.repeat(120)}.localhost:5173`, 'http://8.8.8.8']
  for (const origin of [...near, ...far]) await sendTo(port, 'GET', '/ws/public', { headers: { origin } })
  const logged = log.filter(({ msg }) => msg === 'an origin is not allowed')
  t.strictSame(
    logged.map(({ origin, setting }) => [origin, setting]),
    [
      ...near.map((origin) => [origin, `FRONTEND_ORIGINS=http://localhost:3000,${origin}`]),
      ...far.map((origin) => [origin.slice(0, 128), undefined]),
    ],
  )
  const { FRONTEND_ORIGINS } = parseEnv(String(logged[0]?.['setting'])) as { FRONTEND_ORIGINS: string }
  const next = await testServer(t, { ...ALONE, FRONTEND_ORIGINS })
  const { status } = await sendTo(next.port, 'GET', '/ws/public', { headers: { origin: 'http://localhost:5174' } })
  t.equal(status, 426, 'a copy of it does')
})

await test('in development the log tells to open the allowed address of a page that was opened under another loopback name', async (t) => {
  // The cookies belong to localhost, which PUBLIC_URL names.
  const allowed = ['http://localhost:5183', 'http://127.0.0.1:5184', 'http://localhost:3210']
  const settings = { ...ALONE, PUBLIC_URL: 'http://localhost:3210', FRONTEND_ORIGINS: allowed.join() }
  const { port, log } = await testServer(t, settings)
  const allowing = (origin: string) => `FRONTEND_ORIGINS=${allowed.join()},${origin}`
  const cases: [origin: string, open: string | undefined, setting: string | undefined][] = [
    ['http://127.0.0.1:5183', 'http://localhost:5183', undefined],
    ['http://[::1]:5183', 'http://localhost:5183', undefined],
    ['http://app.localhost:3210', 'http://localhost:3210', undefined],
    // No login works at the allowed name, and one works here.
    ['http://localhost:5184', undefined, allowing('http://localhost:5184')],
    ['http://127.0.0.1:5185', undefined, allowing('http://127.0.0.1:5185')],
    ['https://127.0.0.1:5183', undefined, allowing('https://127.0.0.1:5183')],
    ['http://192.168.1.20:5183', undefined, allowing('http://192.168.1.20:5183')],
  ]
  for (const [origin] of cases) await sendTo(port, 'GET', '/ws/public', { headers: { origin } })
  const logged = log.filter(({ msg }) => msg === 'an origin is not allowed')
  t.strictSame(
    logged.map(({ origin, open, setting }) => [origin, open, setting]),
    cases,
  )
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
  await sendTo(port, 'GET', '/ws/public', { headers: { origin: 'http://localhost:5173' } })
  const logged = log.filter(({ msg }) => msg === 'an origin is not allowed')
  t.equal(logged.length, 3)
  t.match(logged[0], { origin: EVIL, allowed: ['https://bff.example'], level: 40 })
  t.notOk(logged.some((line) => 'setting' in line))
  t.equal(String(logged[1]?.['origin']).length, 128)
  t.equal(await valueOf(opsUrl, 'bff_refused_origins_total'), 17)
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
