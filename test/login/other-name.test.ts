import { test } from 'tap'
import { ALONE, IN_PRODUCTION } from '../support/server/settings.ts'
import { testRedis, testServer } from '../support/server/test-server.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { sendTo } from '../support/user.ts'

/** What a browser sends. */
const NAVIGATES = { 'sec-fetch-mode': 'navigate' }
const MESSAGE = /^A login began under another name/

await test('a login or sign-up that begins under another loopback name: 303 to PUBLIC_URL, and nothing is begun', async (t) => {
  for (const host of ['127.0.0.1:3000', '[::1]:3000', 'app.localhost:3000']) {
    const { port, log, opsUrl } = await testServer(t, ALONE)
    for (const path of ['/auth/login', '/auth/signup']) {
      for (const query of ['', '?return_to=%2Fa%3Fb&sidc=%zz;1', '?//evil.example']) {
        const { status, headers } = await sendTo(port, 'GET', path + query, { headers: { host, ...NAVIGATES } })
        t.equal(status, 303, `${host} ${path}${query}`)
        t.equal(headers.location, `${ALONE.PUBLIC_URL}${path}${query}`)
        t.equal(headers['cache-control'], 'no-store')
        t.notOk('set-cookie' in headers)
      }
    }
    const { status } = await sendTo(port, 'GET', '/auth/login', {
      headers: { host: '127.0.0.1:3000', ...NAVIGATES, 'sec-fetch-dest': 'image' },
    })
    t.equal(status, 403, 'what is no navigation is refused as ever')
    const metrics = await (await fetch(`${opsUrl}/metrics`)).text()
    t.notMatch(metrics, /^bff_attribution_links_total\{/m, 'the link is counted where the sign-up begins')
    t.notOk(log.some(({ msg }) => MESSAGE.test(msg)))
  }
})

await test('a login that begins at a page under another loopback name than that of PUBLIC_URL: 303 to PUBLIC_URL', async (t) => {
  const settings = { ...ALONE, FRONTEND_URL: 'http://localhost:5183', FRONTEND_ORIGINS: 'http://localhost:5183' }
  const { port, log } = await testServer(t, settings)
  const begin = (host: string) => sendTo(port, 'GET', '/auth/login?return_to=%2Fa', { headers: { host, ...NAVIGATES } })
  for (const host of ['127.0.0.1:5183', '[::1]:5183', '127.0.0.1:3000']) {
    const { status, headers } = await begin(host)
    t.equal(status, 303, host)
    t.equal(headers.location, 'http://localhost:3000/auth/login?return_to=%2Fa', host)
    t.notOk('set-cookie' in headers)
  }
  t.match((await begin('localhost:5183')).headers.location, /^http:\/\/127\.0\.0\.1:1\/oauth2\/auth\?/)
  t.notOk(log.some(({ msg }) => MESSAGE.test(msg)))
})

await test('behind a proxy that rewrites Host to such a name a login begins before the browser gives up, and a warning says why', async (t) => {
  const { port, log } = await testServer(t, ALONE)
  const addresses: unknown[] = []
  // Browsers follow twenty redirects.
  while (addresses.length < 20) {
    const { headers } = await sendTo(port, 'GET', '/auth/login', { headers: { host: '127.0.0.1:3000', ...NAVIGATES } })
    addresses.push(headers.location)
    if (headers.location !== `${ALONE.PUBLIC_URL}/auth/login`) break
  }
  t.match(addresses.at(-1), /^http:\/\/127\.0\.0\.1:1\/oauth2\/auth\?/)
  const warned = log.filter(({ msg }) => MESSAGE.test(msg)).map(({ host }) => host)
  t.same(warned, ['127.0.0.1'])
})

await test('a login under the name of PUBLIC_URL: it begins without a warning', async (t) => {
  const { port, log } = await testServer(t, ALONE)
  for (const host of ['localhost:3000', 'LOCALHOST:3000', 'localhost:5173']) {
    const { status, headers } = await sendTo(port, 'GET', '/auth/login', { headers: { host, ...NAVIGATES } })
    t.equal(status, 303, host)
    t.match(headers.location, /^http:\/\/127\.0\.0\.1:1\/oauth2\/auth\?/, host)
  }
  t.notOk(log.some(({ msg }) => MESSAGE.test(msg)))
})

await test('a login under a name that is no loopback one, or with a port that no page has: it begins, and a warning says why it may fail', async (t) => {
  for (const host of ['127.0.0.1:5173', '192.0.2.1:3000', 'bff.example:3000']) {
    const { port, log } = await testServer(t, ALONE)
    const { status, headers } = await sendTo(port, 'GET', '/auth/login', { headers: { host, ...NAVIGATES } })
    t.equal(status, 303, host)
    t.match(headers.location, /^http:\/\/127\.0\.0\.1:1\/oauth2\/auth\?/, host)
    const lines = log.filter(({ msg }) => MESSAGE.test(msg))
    t.match(lines, [{ level: 40, host: host.split(':')[0], publicUrl: 'http://localhost:3000' }])
    t.equal(lines.length, 1)
  }
})

await test('a script under another loopback name begins its login there', async (t) => {
  const { port, log } = await testServer(t, ALONE)
  for (const headers of [{}, { 'sec-fetch-mode': 'cors' }]) {
    const answer = await sendTo(port, 'GET', '/auth/login', { headers: { host: '127.0.0.1:3000', ...headers } })
    t.match(answer.headers.location, /^http:\/\/127\.0\.0\.1:1\/oauth2\/auth\?/)
  }
  t.notOk(log.some(({ msg }) => MESSAGE.test(msg)))
})

await test('in production a login under another name is begun, and a warning names both, once an hour', async (t) => {
  const hours = new HeldTimers(t, 'setInterval', 3_600_000)
  const { port, log } = await testServer(t, { ...IN_PRODUCTION, REDIS_URL: (await testRedis(t)).url })
  const begin = async (host: string): Promise<void> => {
    const { status, headers } = await sendTo(port, 'GET', '/auth/login', { headers: { host } })
    t.equal(status, 303, host)
    t.match(headers.location, /^https:\/\/127\.0\.0\.1:1\/oauth2\/auth\?/, host)
  }
  const lines = () => log.filter(({ msg }) => MESSAGE.test(msg))
  for (const host of ['bff.example', 'BFF.example:443', 'bff.example:8443']) await begin(host)
  t.equal(lines().length, 0, 'cookies do not belong to a port')
  await begin('www.bff.example')
  for (let count = 0; count < 20; count++) await begin(`${'a'.repeat(60)}.${'b'.repeat(60)}.${'c'.repeat(60)}.example`)
  t.match(lines(), [{ level: 40, host: 'www.bff.example', publicUrl: 'https://bff.example' }])
  t.equal(lines().length, 1)
  hours.run()
  t.equal(lines().length, 2)
  t.match(lines()[1], { count: 20 })
  t.equal(String(lines()[1]?.['host']).length, 128)
})
