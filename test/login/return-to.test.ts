import * as fc from 'fast-check'
import { test } from 'tap'
import { safeReturnTo } from '../../src/login/return-to.ts'
import { scripted } from '../support/login/token-endpoint.ts'
import { startWorld } from '../support/world.ts'

const FRONTEND = 'https://app.example'

await test('safeReturnTo keeps a path of the frontend unchanged', async (t) => {
  for (const path of [
    '/',
    '/chart',
    '/chart?symbol=R_100&x=%2F%2Fevil#top',
    '/a/../b',
    "/search?q='a'|b",
    '/authors/1',
    '/api-docs',
    '/wsx',
    `/${'x'.repeat(2047)}`,
  ]) {
    t.equal(safeReturnTo([path], FRONTEND), path)
  }
})

await test('safeReturnTo replaces everything else with /', async (t) => {
  for (const path of [
    '',
    'chart',
    '//evil.example',
    '/\\evil.example',
    '\\\\evil.example',
    '/\t/evil.example',
    '/\n/evil.example',
    '/%0d%0aSet-Cookie:x=1\r\n',
    'https://evil.example/',
    'https:evil.example',
    'javascript:alert(1)',
    `${FRONTEND}/chart`,
    '/chart#ä',
    '/chart?x= y',
    '/x/..//evil.example',
    '/x/..\\/evil.example',
    '/.//evil.example',
    '/%2e//evil.example',
    '/auth/logout',
    '/auth',
    '/auth?x',
    '/AUTH/login',
    '/%61uth/login',
    '/%61uth/%',
    '/auth%2Flogin',
    '/./auth/login',
    '/x/../api/v1/health',
    '/x/%2e%2e/api/v1/health',
    '/\u0000',
    '/ws/public',
    '/\u202e',
    `/${'x'.repeat(2048)}`,
  ]) {
    t.equal(safeReturnTo([path], FRONTEND), '/', JSON.stringify(path))
  }
  t.equal(safeReturnTo([], FRONTEND), '/')
  t.equal(safeReturnTo(['/a', '/a'], FRONTEND), '/')
})

/** Strings built from fragments that open redirects are made of. */
const hostile = fc
  .array(
    fc.oneof(
      fc.constantFrom('/', '\\', '//', '..', '.', '%2e', '%2f', '%5c', '@', ':', '?', '#', '\t', '\r\n', ' '),
      fc.constantFrom('https:', 'javascript:', 'evil.example', 'auth', 'api', 'ws', '%61', '\0', 'ä', '。'),
      fc.string({ unit: 'binary', maxLength: 3 }),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(''))

/** @throws Error when `safeReturnTo` returns anything but a path of the frontend */
function checkStaysOnFrontend(returnTo: string): void {
  const path = safeReturnTo([returnTo], FRONTEND)
  if (!/^\/(?![/\\])[\x21-\x7e]*$/.test(path)) throw new Error(`not a path: ${path}`)
  const url = new URL(path, FRONTEND)
  if (url.origin !== FRONTEND || new URL(FRONTEND + path).href !== url.href)
    throw new Error(`leaves the frontend: ${path}`)
  if (/^\/(auth|api|ws)(\/|$)/.test(url.pathname)) throw new Error(`reserved path: ${path}`)
}

await test('safeReturnTo never leaves the frontend, whatever return_to is', async () => {
  fc.assert(fc.property(fc.oneof(fc.webUrl(), fc.string({ unit: 'binary' }), hostile), checkStaysOnFrontend), {
    numRuns: 5000,
  })
  fc.assert(
    fc.property(
      hostile.map((text) => `/${text}`),
      checkStaysOnFrontend,
    ),
    { numRuns: 20_000 },
  )
})

await test('GET /auth/login and a failing GET /auth/callback: 303 to a page of the frontend, whatever return_to is', async (t) => {
  const { server } = await startWorld(t, { provider: scripted, settings: { AUTH_STARTS_PER_MINUTE: '0' } })
  await fc.assert(
    fc.asyncProperty(fc.oneof(hostile, fc.string({ unit: 'grapheme' })), async (returnTo) => {
      const query = `return_to=${encodeURIComponent(returnTo.toWellFormed())}`
      const start = await fetch(`${server.url}/auth/login?${query}`, { redirect: 'manual' })
      if (start.status !== 303) throw new Error(`start: ${start.status}`)
      const state = new URL(start.headers.get('location') ?? '').searchParams.get('state')
      const [cookie = ''] = start.headers.getSetCookie()
      const back = await fetch(`${server.url}/auth/callback?state=${state}&code=x`, {
        redirect: 'manual',
        headers: { cookie: cookie.split(';', 1)[0] ?? '' },
      })
      const location = back.headers.get('location') ?? ''
      const path = location.slice(server.url.length)
      if (back.status !== 303 || !location.startsWith(server.url)) throw new Error(`${back.status} ${location}`)
      if (!/^\/(?![/\\])[\x21-\x7e]*$/.test(path)) throw new Error(path)
      if (new URL(location).origin !== server.url) throw new Error(location)
    }),
    { numRuns: 150 },
  )
})

await test('GET /auth/login: a malformed, repeated or missing return_to brings the user back to /', async (t) => {
  const world = await startWorld(t, { provider: scripted })
  for (const query of ['return_to=%ff%fe', 'return_to=%', 'return_to=/a&return_to=/b', 'return_to', '&&&=&']) {
    const login = await world.startLogin(`/auth/login?${query}`)
    t.equal((await login.finish()).url.href, `${world.server.url}/`, query)
  }
})
